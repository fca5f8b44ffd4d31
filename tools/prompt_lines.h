#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "lamplighter/error.h"
#include "lamplighter/options.h"

namespace lamplighter::cli {

// What a line says of how it is drawn.
struct LineMethod {
  MethodOptions options;
  bool named = false;  // options.method is the line's
};

// One prompt of a run, before it is multiplied by its count.
struct PromptLine {
  Request request;
  std::optional<std::uint64_t> seed;  // of its own
  std::string output;                 // pattern
  int count = 1;                      // pictures
  std::string origin;                 // for messages: "prompt 2", "prompts.txt line 3"
  bool is_of_file = false;            // not of flags: what is wrong with it concerns it alone
  bool names_output = false;          // `output` is its own
  std::optional<LineMethod> method;
  std::optional<Error> failure;  // what is wrong with it
};
using TakeLine = std::function<void(PromptLine line)>;

// A caption of the command line. Throws Error(ExitCode::input).
PromptLine caption_line(const PromptLine& pattern, const std::string& caption, std::string origin);

// Prompts out of the text of a file or a part of it: one a line, where blank lines and those that begin with
// "#" are passed over, and a line that begins with "{" is a JSON object with an "output", a "batch_count", a
// "method" and its options, and the fields of a request (pipeline/requests/request_fields.h); or a JSON array
// of texts and of such objects. What is not given is the pattern's. A prompt that cannot be drawn comes with
// its failure. `name` stands for the file in messages, `number` is that of the first line.
void read_prompts(std::string_view text, const std::string& name, std::size_t number,
                  const PromptLine& pattern, const TakeLine& take);

// Whether a text begins a JSON array of prompts; captions in brackets are captions.
bool begins_array(std::string_view text);

}  // namespace lamplighter::cli

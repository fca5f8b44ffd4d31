#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "batch/captions/entries.h"
#include "lamplighter/error.h"
#include "lamplighter/options.h"

namespace lamplighter::cli {

// Method and options that a line sets.
struct LineMethod {
  MethodOptions options;
  bool named = false;  // whether the line names options.method
};

// One prompt of a run, which stands for `count` images.
struct PromptLine {
  Request request;
  std::optional<std::uint64_t> seed;  // the line's own
  std::string output;                 // pattern
  int count = 1;                      // images
  std::string origin;                 // for messages: "prompt 2", "prompts.txt line 3"
  bool is_of_file = false;            // comes from a file: its failure does not end the run
  bool names_output = false;          // whether the line sets `output`
  std::optional<LineMethod> method;
  std::optional<Error> failure;  // why it cannot be generated
};
using TakeLine = std::function<void(PromptLine line)>;

// Makes a line of a caption from the command line. Throws Error(ExitCode::input).
PromptLine caption_line(const PromptLine& pattern, const std::string& caption, std::string origin);

// Reads prompts from the text of a file or a part of it, in the formats of caption sets
// (batch/captions/entries.h). JSON objects and flags have "output", "batch_count", "method" and its options,
// and the fields of a request (pipeline/metadata/request_fields.h); other fields are refused, except in data
// sets. Missing fields come from the pattern. A prompt that cannot be generated carries its failure. `name`
// is the file in messages.
void read_prompts(std::string_view text, const std::string& name, const captions::SourceOptions& options,
                  const PromptLine& pattern, const TakeLine& take);

}  // namespace lamplighter::cli

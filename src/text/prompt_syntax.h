#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lamplighter {

// The first flag in a caption or a line: "--ar" of "a cat --ar 16:9"; empty: none.
std::string_view find_flag(std::string_view text);

// The forms of web UIs that a caption contains, as they stand there: weights "(word:1.3)", networks
// "<lora:name:1>", choices "{red|blue}", wildcards "__colour__" and flags "--ar". A bundle reads them as
// plain text. At most one example of each form.
std::vector<std::string> find_prompt_syntax(std::string_view caption);

// Collects the forms of all captions of a run.
class PromptSyntax {
 public:
  void add(std::string_view caption);
  // One line about the forms that were found; empty when there are none. It is returned once.
  std::string note();

 private:
  std::vector<std::string> found_;  // the first example of each form
  bool is_reported_ = false;
};

}  // namespace lamplighter

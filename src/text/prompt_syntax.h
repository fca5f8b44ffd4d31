#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lamplighter {

// The first flag in a caption or a line: "--ar" of "a cat --ar 16:9"; empty: none.
std::string_view find_flag(std::string_view text);

// Collects the forms of web UIs that the captions of a run contain: weights "(word:1.3)", "((word))" and
// "[word]", "BREAK", networks "<lora:name:1>", choices "{red|blue}", wildcards "__colour__" and flags "--ar";
// and the marks of documents: items "- a cat", captions between quotes, tags "<br>", emphasis "**word**" and
// links. A bundle reads them as text. Forms that plain captions have, too, as "(word)", are none.
class PromptSyntax {
 public:
  void add(std::string_view caption);
  // The first example of each form that was found, as it stands in its caption.
  std::vector<std::string> examples() const;
  // One line about the forms that were found; empty when there are none. It is returned once.
  std::string note();

 private:
  std::vector<std::string> found_;  // of each form; empty: none
  bool is_reported_ = false;
};

}  // namespace lamplighter

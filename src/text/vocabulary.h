#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "lamplighter/bundle.h"

namespace lamplighter {

// How well a bundle with a small vocabulary understands a caption.
struct Understanding {
  bool subject = false;              // whether the caption names a subject
  std::vector<std::string> unknown;  // unknown words in order, each once

  bool whole() const { return subject && unknown.empty(); }
};

// The words that a bundle understands. Captions are compared in lower case, word by word. A word is a run of
// letters, digits, hyphens and apostrophes.
class Vocabulary {
 public:
  explicit Vocabulary(const VocabularyEntry& entry);

  Understanding read(std::string_view caption) const;

 private:
  using Words = std::vector<std::string>;
  std::set<std::string> known_;
  std::vector<Words> subjects_;  // phrases that name a subject
};

}  // namespace lamplighter

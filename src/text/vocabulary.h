#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "lamplighter/bundle.h"

namespace lamplighter {

// What a bundle that knows few words makes of a caption.
struct Understanding {
  bool subject = false;              // whether the caption names one
  std::vector<std::string> unknown;  // words that mean nothing, in order, each once

  bool whole() const { return subject && unknown.empty(); }
};

// The words of a bundle. Captions are compared in lower case, word by word; a word is a run of letters,
// digits, hyphens and apostrophes.
class Vocabulary {
 public:
  explicit Vocabulary(const VocabularyEntry& entry);

  Understanding read(std::string_view caption) const;

 private:
  using Words = std::vector<std::string>;
  std::set<std::string> known_;
  std::vector<Words> subjects_;  // phrases that name one
};

}  // namespace lamplighter

#include "text/vocabulary.h"

#include <algorithm>

#include "text/cleaning.h"

namespace lamplighter {
namespace {

// All characters outside ASCII belong to words.
bool is_of_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '\'' ||
         static_cast<unsigned char>(c) >= 0x80;
}

std::vector<std::string> split(std::string_view caption) {
  std::vector<std::string> words(1);
  for (const char c : clean_text(caption, "lower")) {
    if (is_of_word(c)) {
      words.back() += c;
    } else if (!words.back().empty()) {
      words.emplace_back();
    }
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

}  // namespace

Vocabulary::Vocabulary(const VocabularyEntry& entry) {
  for (const std::string& word : entry.other) known_.insert(word);
  for (const VocabularyEntry::Kind& kind : entry.kinds) {
    for (const VocabularyEntry::Value& value : kind.values) {
      for (const std::string& phrase : value.phrases) {
        const Words words = split(phrase);
        known_.insert(words.begin(), words.end());
        if (kind.name == entry.subject && !words.empty()) subjects_.push_back(words);
      }
    }
  }
}

Understanding Vocabulary::read(std::string_view caption) const {
  const Words words = split(caption);
  Understanding result;
  std::set<std::string> seen;
  for (const std::string& word : words) {
    if (known_.count(word) == 0 && seen.insert(word).second) result.unknown.push_back(word);
  }
  result.subject = std::any_of(subjects_.begin(), subjects_.end(), [&](const Words& phrase) {
    return std::search(words.begin(), words.end(), phrase.begin(), phrase.end()) != words.end();
  });
  return result;
}

}  // namespace lamplighter

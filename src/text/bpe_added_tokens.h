#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace lamplighter {

// Texts that become one id wherever they occur, before any other processing.
class BpeAddedTokens {
 public:
  void add(std::u32string text, std::int64_t id);  // `text` is not empty

  // Scans a text from left to right. `token` gets the id of every token found, the longest one at a position;
  // `plain` gets the text in between, which is never empty.
  void split(std::u32string_view text, const std::function<void(std::u32string_view)>& plain,
             const std::function<void(std::int64_t)>& token) const;

 private:
  std::unordered_map<std::u32string, std::int64_t> ids_;
  std::unordered_map<char32_t, std::vector<std::size_t>> lengths_;  // by first character, the longest first
};

}  // namespace lamplighter

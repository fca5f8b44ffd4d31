#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace lamplighter {

constexpr const char* kBlanks = " \t\r\n\v\f";

inline bool is_blank(std::string_view text) {
  return text.find_first_not_of(kBlanks) == std::string_view::npos;
}

// Without these characters at both ends.
inline std::string_view trimmed(std::string_view text, const char* blanks = kBlanks) {
  text = text.substr(0, text.find_last_not_of(blanks) + 1);
  return text.substr(std::min(text.find_first_not_of(blanks), text.size()));
}

// Removes the byte-order mark that some editors put at the start of a UTF-8 file.
inline std::string_view without_mark(std::string_view text) {
  constexpr std::string_view mark = "\xEF\xBB\xBF";
  return text.substr(0, mark.size()) == mark ? text.substr(mark.size()) : text;
}

// Calls take(line, number) for every line that is not blank, without its end ("\n" or "\r\n"). Numbers count
// all lines from 1.
template <class Take>
void for_each_line(std::string_view text, const Take& take) {
  std::size_t number = 1;
  for (std::size_t begin = 0; begin < text.size(); ++number) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (!is_blank(line)) take(line, number);
  }
}

}  // namespace lamplighter

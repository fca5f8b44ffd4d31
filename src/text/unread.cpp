#include "text/unread.h"

#include <algorithm>
#include <string>

#include "base/utf8.h"
#include "text/unicode.h"

namespace lamplighter {
namespace {

using Text = std::u32string_view;

constexpr std::size_t kLongestWord = 40;  // code points; a longer one is quoted from where reading stops
constexpr char32_t kJoiner = 0x200D;      // between the code points of an emoji

// Scripts without spaces between words, and symbols: a quotation may begin at each of their characters.
bool stands_alone(char32_t code) {
  const bool south_east = (code >= 0x0E00 && code <= 0x0EFF) || (code >= 0x1000 && code <= 0x109F) ||
                          (code >= 0x1780 && code <= 0x17FF);  // Thai, Lao, Burmese, Khmer
  const bool hangul = code >= 0xAC00 && code <= 0xD7FF;
  return south_east || (code >= 0x2190 && !hangul);  // arrows, symbols, kana, ideographs, emoji
}

// Whether two neighbours are one character to a reader.
bool are_one(char32_t left, char32_t right) {
  return modifies(right) || left == kJoiner;
}

// Whether two neighbours are in one word.
bool are_joined(char32_t left, char32_t right) {
  return are_one(left, right) ||
         (!is_space(left) && !is_space(right) && !stands_alone(left) && !stands_alone(right));
}

// Goes back from `stop` while neighbours belong together, at most to `least`.
template <class Together>
std::size_t go_back(Text text, std::size_t stop, std::size_t least, Together together) {
  while (stop > least && stop < text.size() && together(text[stop - 1], text[stop])) --stop;
  return stop;
}

std::size_t word_start(Text text, std::size_t stop) {
  while (stop < text.size() && is_space(text[stop])) ++stop;
  const std::size_t least = stop - std::min(stop, kLongestWord);
  const std::size_t start = go_back(text, stop, least, are_joined);
  const bool too_long = start == least && go_back(text, start, 0, are_joined) < start;
  return too_long ? go_back(text, stop, 0, are_one) : start;
}

// The number of code points in the first `bytes` bytes; one that they split does not count.
std::size_t count_codes(std::string_view text, std::size_t bytes) {
  bytes = std::min(bytes, text.size());
  while (bytes > 0 && bytes < text.size() && (static_cast<unsigned char>(text[bytes]) & 0xC0U) == 0x80U)
    --bytes;
  return decode_utf8(text.substr(0, bytes)).size();
}

}  // namespace

std::string unread_end(std::string_view caption, std::string_view seen, std::size_t read) {
  const std::u32string text = strip(decode_utf8(caption)), codes = decode_utf8(seen);
  const std::u32string end = strip(codes.substr(word_start(codes, count_codes(seen, read))));
  if (text.size() < end.size()) return encode_utf8(end);
  const std::u32string own = text.substr(text.size() - end.size());
  return encode_utf8(to_lower(own) == to_lower(end) ? own : end);
}

}  // namespace lamplighter

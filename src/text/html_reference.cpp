#include <algorithm>
#include <array>

#include "base/utf8.h"
#include "text/html.h"
#include "text/html_scan.h"
#include "text/unicode.h"

namespace lamplighter {
namespace html {

char32_t parse_code(std::u32string_view figures, char32_t base) {
  char32_t value = 0;
  for (const char32_t c : figures) {
    const char32_t figure = is_figure(c) ? c - '0' : (c | 0x20U) - 'a' + 10;
    value = std::min<char32_t>(value * base + figure, 0x110000);
  }
  return value;
}

Number find_number(std::u32string_view text, std::size_t hash) {
  const bool hexadecimal = hash + 1 < text.size() && (text[hash + 1] == 'x' || text[hash + 1] == 'X');
  const std::size_t first = hash + (hexadecimal ? 2 : 1);
  return {first, hexadecimal ? skip(text, first, is_hexadecimal) : skip(text, first, is_figure),
          hexadecimal ? 16U : 10U};
}

std::u32string named(std::u32string_view name) {
  std::string bytes;
  for (const char32_t c : name) bytes += c < 0x80 ? static_cast<char>(c) : '\1';  // names are plain ASCII
  return decode_utf8(find_entity(bytes));
}

}  // namespace html

namespace {

bool is_noncharacter(char32_t code) {
  return code < 0x09 || code == 0x0B || (code >= 0x0E && code < 0x20) || (code >= 0x7F && code < 0xA0) ||
         (code >= 0xFDD0 && code <= 0xFDEF) || (code & 0xFFFEU) == 0xFFFE;
}

// Resolves a numeric reference by the rules of HTML 5.
std::u32string numeric(char32_t code) {
  if (code == 0 || (code >= 0xD800 && code <= 0xDFFF) || code > 0x10FFFF) return {html::kReplacement};
  if (code >= 0x80 && code < 0xA0) return {from_windows_1252(code)};
  return is_noncharacter(code) ? std::u32string() : std::u32string{code};
}

// Resolves the longest entity name at the start of `name` and appends the rest of the name.
std::u32string named_prefix(std::u32string_view name) {
  for (std::size_t size = name.size(); size > 1; --size) {
    std::u32string text = html::named(name.substr(0, size));
    if (!text.empty()) return text.append(name.substr(size));
  }
  return std::u32string(U"&").append(name);
}

}  // namespace

char32_t from_windows_1252(char32_t code) {
  static constexpr std::array<char32_t, 32> table{
      0x20AC, 0x81,   0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160,
      0x2039, 0x0152, 0x8D,   0x017D, 0x8F,   0x90,   0x2018, 0x2019, 0x201C, 0x201D, 0x2022,
      0x2013, 0x2014, 0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0x9D,   0x017E, 0x0178};
  return code >= 0x80 && code < 0xA0 ? table[code - 0x80] : code;
}

std::u32string unescape_html(std::u32string_view text) {
  const auto names = [](char32_t c) {
    return c != '\t' && c != '\n' && c != '\f' && c != ' ' && c != '<' && c != '&' && c != '#' && c != ';';
  };
  std::u32string result;
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] != '&') {
      result += text[at++];
      continue;
    }
    const bool number = at + 1 < text.size() && text[at + 1] == '#';
    const html::Number figures = html::find_number(text, at + 1);
    const std::size_t first = number ? figures.first : at + 1;
    const std::size_t last = number ? figures.last : std::min(html::skip(text, first, names), first + 32);
    if (first == last) {
      result += text[at++];
      continue;
    }
    const bool closed = last < text.size() && text[last] == ';';
    if (number) {
      result += numeric(html::parse_code(text.substr(first, last - first), figures.base));
    } else {
      result += named_prefix(text.substr(first, last - first + (closed ? 1 : 0)));
    }
    at = last + (closed ? 1 : 0);
  }
  return result;
}

}  // namespace lamplighter

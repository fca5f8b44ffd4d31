#include "text/repair.h"

#include <algorithm>

#include "base/utf8.h"
#include "text/html.h"
#include "text/mojibake.h"
#include "text/pattern.h"
#include "text/unicode.h"

namespace lamplighter {
namespace {

using Text = std::u32string_view;

struct Ligature {
  char32_t code;
  Text letters;
};
constexpr Ligature kLigatures[] = {
    {0x132, U"IJ"},       {0x133, U"ij"},      {0x149, U"\u02BCn"}, {0x1F1, U"DZ"},      {0x1F2, U"Dz"},
    {0x1F3, U"dz"},       {0x1C4, U"D\u017D"}, {0x1C5, U"D\u017E"}, {0x1C6, U"d\u017E"}, {0x1C7, U"LJ"},
    {0x1C8, U"Lj"},       {0x1C9, U"lj"},      {0x1CA, U"NJ"},      {0x1CB, U"Nj"},      {0x1CC, U"nj"},
    {0xFB00, U"ff"},      {0xFB01, U"fi"},     {0xFB02, U"fl"},     {0xFB03, U"ffi"},    {0xFB04, U"ffl"},
    {0xFB05, U"\u017Ft"}, {0xFB06, U"st"}};

std::u32string split_ligatures(Text text) {
  std::u32string result;
  for (const char32_t code : text) {
    const Ligature* found = nullptr;
    for (const Ligature& ligature : kLigatures) {
      if (ligature.code == code) found = &ligature;
    }
    if (found) {
      result += found->letters;
    } else {
      result += code;
    }
  }
  return result;
}

bool is_control(char32_t c) {
  return c <= 0x08 || c == 0x0B || (c >= 0x0E && c < 0x20) || c == 0x7F || (c >= 0x206A && c <= 0x206F) ||
         c == 0xFEFF || (c >= 0xFFF9 && c <= 0xFFFC);
}

// Replaces one curly quote or line break.
char32_t straighten(char32_t c) {
  if (c == 0x2BC || (c >= 0x2018 && c <= 0x201B)) return '\'';
  if (c >= 0x201C && c <= 0x201F) return '"';
  if (c == '\r' || c == 0x2028 || c == 0x2029 || c == 0x85) return '\n';
  return c;
}

std::u32string drop_terminal_escapes(Text text, std::size_t* steps) {
  namespace p = pattern;
  const auto parameter = [](char32_t c) { return is_digit(c) || c == ';'; };
  const auto letter = [](char32_t c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  return p::substitute(text, p::sequence(p::literal(U"\x1B["), p::repeat(parameter, 0), p::one(letter)), {},
                       steps);
}

// Resolves references that end with ";" and have one meaning.
std::u32string unescape_whole(Text text, std::size_t* steps) {
  namespace p = pattern;
  const auto letter = [](char32_t c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  };
  const auto reference =
      p::sequence(p::literal(U"&"), p::maybe(p::literal(U"#")), p::repeat(letter, 1, 24), p::literal(U";"));
  const auto resolve = [](Text found) {
    const std::u32string plain = unescape_html(found);
    const bool is_whole = found[1] == U'#' ? plain.find(U';') == std::u32string::npos
                                           : !find_entity(encode_utf8(found.substr(1))).empty();
    return is_whole ? plain : std::u32string(found);
  };
  return p::transform(text, reference, resolve, steps);
}

// One round of the steps.
std::u32string repair_round(Text text, bool unescapes, std::size_t* steps) {
  std::u32string result = unescapes ? unescape_whole(text, steps) : std::u32string(text);
  result = fix_encoding(result, steps);
  for (char32_t& code : result) code = from_windows_1252(code);
  result = unify_width(split_ligatures(result));
  result = pattern::substitute(result, pattern::literal(U"\r\n"), U"\n", steps);
  for (char32_t& code : result) code = straighten(code);
  const std::u32string plain = drop_terminal_escapes(result, steps);
  result.clear();
  for (const char32_t code : plain) {
    if (!is_control(code)) result += code;
  }
  return compose(result);
}

}  // namespace

std::u32string repair_text(std::u32string_view text, std::size_t* steps) {
  std::u32string result;
  bool unescapes = true;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(U'\n'), text.size() - 1) + 1;
    std::u32string line(text.substr(0, end)), before;
    if (line.find(U'<') != std::u32string::npos) unescapes = false;
    while (line != before) {
      before = line;
      line = repair_round(before, unescapes, steps);
    }
    result += line;
    text.remove_prefix(end);
  }
  return result;
}

}  // namespace lamplighter

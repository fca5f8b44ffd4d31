#include "text/prompt_weights.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "text/prompt_characters.h"

namespace lamplighter {
namespace {

bool is_foreign(char c) {  // part of a letter beyond ASCII
  return static_cast<unsigned char>(c) >= 0x80;
}
bool is_letter(char c) {
  return is_lower(c) || is_upper(c) || is_foreign(c);
}

bool has_letter(std::string_view text) {
  text = text.substr(0, kLooked);
  return std::any_of(text.begin(), text.end(), is_letter);
}

// Whether a word ends in front of this place.
bool is_end(std::string_view text, std::size_t at) {
  return at >= text.size() || std::string_view(" ,.;\t\r\n)").find(text[at]) != kNone;
}

// A pair of brackets in a text, and what stands between them.
struct Brackets {
  std::size_t begin, end;  // of the opening bracket; behind the closing one
  std::string_view inside;
};

// "word:1.3": a number behind a colon. Behind a digit it is a time or a ratio.
bool ends_with_number(std::string_view inside) {
  const auto last = [&](const char* skipped) { return inside.find_last_not_of(skipped); };
  inside = inside.substr(0, last(" ") + 1);
  const std::size_t number = last("0123456789.") + 1;
  if (number == inside.size()) return false;
  inside = inside.substr(0, number);
  if (!inside.empty() && (inside.back() == '-' || inside.back() == '+')) inside.remove_suffix(1);
  inside = inside.substr(0, last(" ") + 1);
  return inside.size() > 1 && inside.back() == ':' && !is_digit(inside[inside.size() - 2]);
}

// "[word]" and its relatives "[a|b]" and "[a:b:0.5]". Text that begins otherwise is a reference, a mark or a
// list: "[1]", "[V]", "[Name]". So is "[sic]".
bool is_lowered(const Brackets& brackets, std::string_view text) {
  const std::string_view inside = brackets.inside;
  const char before = brackets.begin == 0 ? ' ' : text[brackets.begin - 1];
  const char after = brackets.end == text.size() ? ' ' : text[brackets.end];
  const bool is_word = inside.size() > 1 && (is_lower(inside[0]) || is_foreign(inside[0])) && inside != "sic";
  return is_word && !is_letter(before) && !is_digit(before) && after != '(' &&
         inside.substr(0, kLooked).find_first_of("\"=\n") == kNone;
}

// "(word)1.3", "(word)++", "(word)--" and "("a", "b").and()" of prompt libraries.
bool is_scaled(const Brackets& brackets, std::string_view text) {
  const std::string_view rest = text.substr(brackets.end);
  constexpr std::array<std::string_view, 3> kCalls{".and(", ".blend(", ".swap("};
  const bool is_call = std::any_of(kCalls.begin(), kCalls.end(), [&](std::string_view call) {
    return rest.substr(0, call.size()) == call;
  });
  if (is_call) return true;
  const bool is_alone = brackets.begin == 0 || text[brackets.begin - 1] == ' ';
  if (!is_alone || rest.empty() || !has_letter(brackets.inside)) return false;
  const std::size_t plus = std::min(rest.find_first_not_of('+'), rest.size());
  const std::size_t minus = std::min(rest.find_first_not_of('-'), rest.size());
  const std::size_t number = std::min(rest.find_first_not_of("0123456789."), rest.size());
  const bool is_number = rest.substr(0, number).find('.', 1) < number - 1;
  return (plus > 0 && is_end(rest, plus)) || (minus > 1 && is_end(rest, minus)) ||
         (is_number && is_digit(rest[number - 1]) && is_end(rest, number));
}

// The part in brackets that is weighed, by the grammar of web UIs: brackets nest, and a backslash takes the
// meaning of the next character away.
std::string_view find_brackets(std::string_view text) {
  std::vector<std::size_t> open;
  Brackets last{kNone, kNone, {}};  // the pair that was closed last
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '\\') ++at;
    if (c == '(' || c == '[') open.push_back(at);
    if (c != ')' && c != ']') continue;
    if (open.empty() || text[open.back()] != (c == ')' ? '(' : '[')) {
      open.clear();
      continue;
    }
    const std::size_t begin = open.back();
    open.pop_back();
    const Brackets closed{begin, at + 1, text.substr(begin + 1, at - begin - 1)};
    const bool is_double = last.begin == begin + 1 && last.end == at && has_letter(last.inside);
    const bool found = c == ')' ? is_double || ends_with_number(closed.inside) : is_lowered(closed, text);
    if (found) return text.substr(closed.begin, closed.end - closed.begin);
    if (c == ')' && is_scaled(closed, text))
      return text.substr(begin, text.find_first_of(" ,\n", at) - begin);
    last = closed;
  }
  return {};
}

// "{{word}}".
std::string_view find_braces(std::string_view text) {
  for (std::size_t begin = text.find("{{"); begin != kNone; begin = text.find("{{", begin + 2)) {
    const std::string_view inside = text.substr(begin + 2, kLooked);
    const std::size_t end = inside.find("}}");
    if (end != kNone && has_letter(inside.substr(0, end))) return text.substr(begin, end + 4);
  }
  return {};
}

// "word++", "word---" and "word::2". Names as "C++" and dashes between words are none.
std::string_view find_signs(std::string_view text) {
  constexpr std::size_t kLeast = 3;  // letters of a word: "g++"
  std::size_t begin = 0;             // of the word in front of `at`
  bool is_plain = true;              // lower case alone
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (is_letter(c)) {
      is_plain = is_plain && !is_upper(c);
      continue;
    }
    const std::size_t letters = at - begin;
    std::size_t end = std::min(text.find_first_not_of(c, at), text.size());
    const std::size_t signs = end - at;
    if (letters > 0 && c == ':' && signs == 2) {
      if (end < text.size() && text[end] == '-') ++end;
      end = std::min(text.find_first_not_of("0123456789.", end), text.size());
      if (is_end(text, end)) return text.substr(begin, end - begin);
    }
    const bool is_sign = (c == '+' && signs > 1) || (c == '-' && signs > 2);
    if (letters >= kLeast && is_plain && is_sign && is_end(text, end)) return text.substr(begin, end - begin);
    begin = std::max(end, at + 1);
    at = begin - 1;
    is_plain = true;
  }
  return {};
}

}  // namespace

std::string_view find_weight(std::string_view text) {
  constexpr std::array<std::string_view (*)(std::string_view), 3> kWeights{find_brackets, find_braces,
                                                                           find_signs};
  for (const auto find : kWeights) {
    if (const std::string_view found = find(text); !found.empty()) return found;
  }
  return {};
}

}  // namespace lamplighter

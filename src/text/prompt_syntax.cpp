#include "text/prompt_syntax.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "base/message.h"
#include "base/suggestion.h"
#include "text/list_mark.h"

namespace lamplighter {
namespace {

constexpr auto kNone = std::string_view::npos;
constexpr std::size_t kLooked = 200;  // bytes that are looked at in brackets, which nest

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_word(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '/' || c == '*';
}

bool is_lower(char c) {
  return c >= 'a' && c <= 'z';
}
bool is_upper(char c) {
  return c >= 'A' && c <= 'Z';
}
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

// "(word:1.3)", "((word))" and "[word]", by the grammar of web UIs: brackets nest, and a backslash takes the
// meaning of the next character away.
std::string_view find_weight(std::string_view text) {
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
    last = closed;
  }
  return {};
}

// "BREAK" as a word of its own, which begins a new prompt. In a line of capitals it is a word like others.
std::string_view find_break(std::string_view text) {
  constexpr std::string_view kBreak = "BREAK", kAround = " ,\t\r\n";
  const auto is_gap = [&](std::size_t at) { return kAround.find(text[at]) != kNone; };
  const auto is_capital = [](std::string_view word) {
    return !word.empty() && std::all_of(word.begin(), word.end(), is_upper);
  };
  for (std::size_t at = text.find(kBreak); at != kNone; at = text.find(kBreak, at + 1)) {
    const std::size_t end = at + kBreak.size();
    if ((at > 0 && !is_gap(at - 1)) || (end < text.size() && !is_gap(end))) continue;
    const std::string_view left = text.substr(0, text.find_last_not_of(' ', at - 1) + 1);
    const std::string_view right = text.substr(std::min(text.find_first_not_of(' ', end), text.size()));
    const bool in_capitals = at > 0 && is_capital(left.substr(left.find_last_of(kAround) + 1));
    const bool before_capitals = is_capital(right.substr(0, right.find_first_of(kAround)));
    if (text.size() > kBreak.size() && !in_capitals && !before_capitals)
      return text.substr(at, kBreak.size());
  }
  return {};
}

// "<lora:name:0.8>" and its relatives.
std::string_view find_network(std::string_view text) {
  constexpr std::array<std::string_view, 4> kNetworks{"<lora:", "<lyco:", "<hypernet:", "<embedding:"};
  for (const std::string_view network : kNetworks) {
    const std::size_t begin = text.find(network);
    const std::size_t end = begin == kNone ? kNone : text.find('>', begin);
    if (end != kNone) return text.substr(begin, end + 1 - begin);
  }
  return {};
}

// "{red|blue}".
std::string_view find_choice(std::string_view text) {
  std::size_t open = kNone;  // of the innermost braces
  bool has_bar = false;
  for (std::size_t at = text.find('{'); at < text.size(); ++at) {
    if (text[at] == '{') {
      open = at;
      has_bar = false;
    } else if (text[at] == '|') {
      has_bar = true;
    } else if (text[at] == '}') {
      if (open != kNone && has_bar) return text.substr(open, at + 1 - open);
      open = kNone;
    }
  }
  return {};
}

// "__colour__": a name between two pairs of underscores.
std::string_view find_wildcard(std::string_view text) {
  for (std::size_t begin = text.find("__"); begin != kNone; begin = text.find("__", begin + 1)) {
    std::size_t end = begin + 2;
    while (end < text.size() && (is_word(text[end]) || (text[end] == '_' && text.substr(end, 2) != "__")))
      ++end;
    if (end > begin + 2 && text.substr(end, 2) == "__") return text.substr(begin, end + 2 - begin);
  }
  return {};
}

// "- a cat" and "3. a cat" as in lists.
std::string_view find_item(std::string_view text) {
  const ListMark mark = find_list_mark(text);
  return mark.kind == 0 || mark.kind == 'a' ? std::string_view() : text;
}

// A caption between quotes, which belong to it here.
std::string_view find_quotes(std::string_view text) {
  constexpr std::array<std::array<std::string_view, 2>, 4> kPairs{
      {{"\"", "\""}, {"'", "'"}, {"\u201C", "\u201D"}, {"`", "`"}}};
  for (const auto& [open, close] : kPairs) {
    const std::size_t least = open.size() + close.size();
    if (text.size() <= least || text.substr(0, open.size()) != open) continue;
    const std::size_t end = text.find(close, open.size());
    if (end != kNone && end + close.size() == text.size()) return text;
  }
  return {};
}

// "<br>", "</b>": tags that only web pages have.
std::string_view find_tag(std::string_view text) {
  for (std::size_t begin = text.find('<'); begin != kNone; begin = text.find('<', begin + 1)) {
    std::size_t end = begin + 1;
    const bool closes = end < text.size() && text[end] == '/';
    if (closes) ++end;
    const std::size_t name = end;
    while (end < text.size() && (is_lower(text[end]) || is_digit(text[end]))) ++end;
    const bool is_break = text.substr(name, end - name) == "br";
    const std::string_view rest = text.substr(end, 3);
    const std::size_t closing = rest.find('>');
    const bool is_closed = closing != kNone && rest.substr(0, closing).find_first_not_of(" /") == kNone;
    if (end > name && is_closed && (closes || is_break)) return text.substr(begin, end + closing + 1 - begin);
  }
  return {};
}

// "**red**" and "[red](https://...)" of Markdown.
std::string_view find_emphasis(std::string_view text) {
  for (std::size_t begin = text.find("**"); begin != kNone; begin = text.find("**", begin + 2)) {
    const std::string_view inside = text.substr(begin + 2, kLooked);
    const std::size_t end = inside.find("**");
    const bool is_word =
        end != kNone && end > 0 && inside[0] != ' ' && inside[0] != '*' && inside[end - 1] != ' ';
    if (is_word) return text.substr(begin, end + 4);
  }
  const std::size_t link = text.find("](http");
  const std::size_t begin = link == kNone ? kNone : text.rfind('[', link);
  const std::size_t end = begin == kNone ? kNone : text.find(')', link);
  return end == kNone ? std::string_view() : text.substr(begin, end + 1 - begin);
}

using Find = std::string_view (*)(std::string_view text);
constexpr std::array<Find, 10> kForms{find_weight, find_break, find_network, find_choice, find_wildcard,
                                      find_flag,   find_item,  find_quotes,  find_tag,    find_emphasis};

}  // namespace

std::string_view find_flag(std::string_view text) {
  const auto is_letter = [](char c) { return is_lower(c) || is_upper(c); };
  for (std::size_t at = text.find("--"); at != kNone; at = text.find("--", at + 2)) {
    if (at > 0 && text[at - 1] != ' ') continue;
    const std::string_view word = text.substr(at, text.find_first_of(" \t=\r\n", at) - at);
    const bool is_name = word.size() > 2 && is_letter(word[2]) &&
                         std::all_of(word.begin() + 2, word.end(),
                                     [&](char c) { return is_letter(c) || c == '-' || c == '_'; });
    if (is_name) return word;
  }
  return {};
}

void PromptSyntax::add(std::string_view caption) {
  if (is_reported_) return;
  found_.resize(kForms.size());
  for (std::size_t form = 0; form < kForms.size(); ++form) {
    if (found_[form].empty()) found_[form] = kForms[form](caption);
  }
}

std::vector<std::string> PromptSyntax::examples() const {
  std::vector<std::string> examples;
  for (const std::string& example : found_) {
    if (!example.empty()) examples.push_back(example);
  }
  return examples;
}

std::string PromptSyntax::note() {
  std::vector<std::string> found = examples();
  if (found.empty() || is_reported_) return "";
  is_reported_ = true;
  for (std::string& example : found) example = excerpt_of(example);
  return "note: captions contain " + list_of(found) +
         ": weights, breaks, networks, choices, wildcards and flags of web UIs, and marks of lists and "
         "documents, have no meaning here";
}

}  // namespace lamplighter

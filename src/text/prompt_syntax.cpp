#include "text/prompt_syntax.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "base/message.h"
#include "base/suggestion.h"

namespace lamplighter {
namespace {

constexpr auto kNone = std::string_view::npos;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_word(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '/' || c == '*';
}

// "(word:1.3)": a number between a colon and the closing bracket.
std::string_view find_weight(std::string_view text) {
  for (std::size_t colon = text.find(':'); colon != kNone; colon = text.find(':', colon + 1)) {
    const std::size_t begin = text.find_first_not_of(' ', colon + 1);
    if (begin == kNone || (!is_digit(text[begin]) && text[begin] != '.')) continue;
    const std::size_t end = text.find_first_not_of("0123456789.", begin);
    const std::size_t close = end == kNone ? kNone : text.find_first_not_of(' ', end);
    const std::size_t open = text.find_last_of("()", colon);
    if (close != kNone && text[close] == ')' && open != kNone && text[open] == '(' && open + 1 < colon)
      return text.substr(open, close + 1 - open);
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

using Find = std::string_view (*)(std::string_view text);
constexpr std::array<Find, 5> kForms{find_weight, find_network, find_choice, find_wildcard, find_flag};

}  // namespace

std::string_view find_flag(std::string_view text) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
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
         ": weights, networks, choices, wildcards and flags of web UIs are read as plain text";
}

}  // namespace lamplighter

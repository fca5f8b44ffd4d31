#include "text/prompt_syntax.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "base/message.h"
#include "base/suggestion.h"
#include "text/list_mark.h"
#include "text/prompt_characters.h"
#include "text/prompt_weights.h"

namespace lamplighter {
namespace {

bool is_word(char c) {
  return is_digit(c) || is_lower(c) || is_upper(c) || c == '-' || c == '/' || c == '*';
}

// A word of capitals that stands alone and divides a prompt. In a line of capitals it is a word like others.
std::string_view find_divider(std::string_view text, std::string_view word) {
  constexpr std::string_view kAround = " ,\t\r\n";
  const auto is_gap = [&](std::size_t at) { return kAround.find(text[at]) != kNone; };
  const auto is_capital = [](std::string_view other) {
    return std::any_of(other.begin(), other.end(), is_upper) &&
           std::none_of(other.begin(), other.end(), is_lower);
  };
  for (std::size_t at = text.find(word); at != kNone; at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at > 0 && !is_gap(at - 1)) || (end < text.size() && !is_gap(end))) continue;
    const std::string_view left = text.substr(0, text.find_last_not_of(' ', at - 1) + 1);
    const std::string_view right = text.substr(std::min(text.find_first_not_of(' ', end), text.size()));
    const bool in_capitals = at > 0 && is_capital(left.substr(left.find_last_of(kAround) + 1));
    const bool before_capitals = is_capital(right.substr(0, right.find_first_of(kAround)));
    if (text.size() > word.size() && !in_capitals && !before_capitals) return text.substr(at, word.size());
  }
  return {};
}

// "BREAK" begins a new part of a prompt, "AND" joins two prompts, the others divide an image into regions.
std::string_view find_divider(std::string_view text) {
  constexpr std::array<std::string_view, 6> kDividers{"BREAK",   "AND",    "ADDCOMM",
                                                      "ADDBASE", "ADDROW", "ADDCOL"};
  for (const std::string_view word : kDividers) {
    if (const std::string_view found = find_divider(text, word); !found.empty()) return found;
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

// "embedding:name" as a word of its own.
std::string_view find_embedding(std::string_view text) {
  constexpr std::string_view kEmbedding = "embedding:";
  for (std::size_t at = text.find(kEmbedding); at != kNone; at = text.find(kEmbedding, at + 1)) {
    if (at > 0 && (is_word(text[at - 1]) || text[at - 1] == '_' || text[at - 1] == '<')) continue;
    std::size_t end = at + kEmbedding.size();
    while (end < text.size() && (is_word(text[end]) || text[end] == '_' || text[end] == '.')) ++end;
    if (end > at + kEmbedding.size()) return text.substr(at, end - at);
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
constexpr std::array<Find, 11> kForms{find_weight, find_divider,  find_network, find_embedding,
                                      find_choice, find_wildcard, find_flag,    find_item,
                                      find_quotes, find_tag,      find_emphasis};

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
         ": weights, breaks, networks, embeddings, choices, wildcards and flags of web UIs, and marks of "
         "lists and documents, have no meaning here";
}

}  // namespace lamplighter

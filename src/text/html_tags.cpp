#include "text/html_tags.h"

#include <algorithm>
#include <array>
#include <utility>

#include "text/html_scan.h"
#include "text/unicode.h"

namespace lamplighter::html {
namespace {

bool hides_text(std::u32string_view name) {
  return name == U"rt" || name == U"rp" || name == U"template";
}

// Tags without content, which no end tag closes.
bool has_no_content(std::u32string_view name) {
  constexpr std::array<std::u32string_view, 23> kNames{
      U"area",     U"base", U"basefont", U"bgsound", U"br",     U"col",     U"command", U"embed",
      U"frame",    U"hr",   U"image",    U"img",     U"input",  U"isindex", U"keygen",  U"link",
      U"menuitem", U"meta", U"nextid",   U"param",   U"source", U"spacer",  U"track"};
  return name == U"wbr" || std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

bool is_quote(char32_t c) {
  return c == '"' || c == '\'';
}
bool is_gap(char32_t c) {
  return c == '/' || is_space(c);
}
bool is_bare(char32_t c) {
  return c != '>' && !is_space(c);
}

}  // namespace

template <class Set>
std::size_t StartTags::pass(std::size_t at, Set set) {
  const std::size_t end = skip(html_, at, set);
  steps_ += end - at + 1;
  return end;
}

// An attribute follows white space, "/" or the quote of the last value.
bool StartTags::begins_attribute(std::size_t at) const {
  if (at >= html_.size() || html_[at] == '>' || is_gap(html_[at])) return false;
  return is_quote(html_[at - 1]) || is_gap(html_[at - 1]);
}

// Behind white space and "/", but not behind the "/" of "/>".
std::size_t StartTags::gaps_end(std::size_t at) {
  const std::size_t end = pass(at, is_gap);
  const bool ends_tag = end > at && end < html_.size() && html_[end] == '>' && html_[end - 1] == '/';
  return ends_tag ? end - 1 : end;
}

// Behind a value whose signs "=" begin at first_sign. A quote that never closes is no value: what is in front
// of it is one, as far as the expression can give back: white space, or a second "=".
std::size_t StartTags::value_end(std::size_t first_sign, std::size_t name_end) {
  const std::size_t last = pass(first_sign, [](char32_t c) { return c == '='; });
  const std::size_t value = pass(last, is_space);
  const bool is_quoted = value < html_.size() && is_quote(html_[value]);
  if (!is_quoted) return pass(value, is_bare);
  const std::size_t closing = html_.find(html_[value], value + 1);
  steps_ += std::min(closing, html_.size()) - value;
  if (closing != kNone) return closing + 1;
  if (value > last) return value;
  return last - first_sign > 1 ? pass(last - 1, is_bare) : name_end;
}

std::size_t StartTags::attribute_end(std::size_t at) {
  const auto names = [](char32_t c) { return c != '=' && c != '>' && !is_gap(c); };
  const std::size_t name_end = pass(at + 1, names), sign = pass(name_end, is_space);
  const bool has_value = sign < html_.size() && html_[sign] == '=';
  return gaps_end(has_value ? value_end(sign, name_end) : name_end);
}

StartTags::End StartTags::find(std::size_t name_end) {
  if (seen_.empty()) seen_.resize(html_.size());
  std::size_t at = pass(name_end, is_gap);
  bool is_empty = at > name_end && html_[at - 1] == '/';
  while (begins_attribute(at)) {
    if (seen_[at]) return {kNone, false};
    seen_[at] = true;
    at = attribute_end(at);
    is_empty = false;
  }
  at = pass(at, is_space);
  if (at < html_.size() && html_[at] == '>') return {at + 1, is_empty};
  const bool ends = at + 1 < html_.size() && html_[at] == '/' && html_[at + 1] == '>';
  return {ends ? at + 2 : kNone, ends};
}

void OpenTags::open(std::u32string name) {
  if (has_no_content(name)) return;
  hidden_ += hides_text(name);
  ++counts_[name];
  names_.push_back(std::move(name));
}

void OpenTags::close(const std::u32string& name) {
  const auto found = counts_.find(name);
  if (found == counts_.end() || found->second == 0) return;
  for (bool is_done = false; !is_done; names_.pop_back()) {
    is_done = names_.back() == name;
    hidden_ -= hides_text(names_.back());
    --counts_[names_.back()];
  }
}

}  // namespace lamplighter::html

#include "text/html.h"

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "base/utf8.h"
#include "text/unicode.h"

namespace lamplighter {
namespace {

using Text = std::u32string_view;
constexpr std::size_t kNone = Text::npos;
constexpr char32_t kReplacement = 0xFFFD;

bool is_letter(char32_t c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_figure(char32_t c) {
  return c >= '0' && c <= '9';
}
bool is_alphanumeric(char32_t c) {
  return is_letter(c) || is_figure(c);
}
bool is_hexadecimal(char32_t c) {
  return is_figure(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

template <class Set>
std::size_t skip(Text text, std::size_t at, Set set) {
  while (at < text.size() && set(text[at])) ++at;
  return at;
}

// Parses a number in base 10 or 16, saturated above the last code point.
char32_t parse_code(Text figures, char32_t base) {
  char32_t value = 0;
  for (const char32_t c : figures) {
    const char32_t figure = is_figure(c) ? c - '0' : (c | 0x20U) - 'a' + 10;
    value = std::min<char32_t>(value * base + figure, 0x110000);
  }
  return value;
}

// Start and base of the digits in "#65" or "#x41".
struct Number {
  std::size_t first, last;
  char32_t base;
};
Number find_number(Text text, std::size_t hash) {
  const bool hexadecimal = hash + 1 < text.size() && (text[hash + 1] == 'x' || text[hash + 1] == 'X');
  const std::size_t first = hash + (hexadecimal ? 2 : 1);
  return {first, hexadecimal ? skip(text, first, is_hexadecimal) : skip(text, first, is_figure),
          hexadecimal ? 16U : 10U};
}

std::u32string named(Text name) {
  std::string bytes;
  for (const char32_t c : name) bytes += c < 0x80 ? static_cast<char>(c) : '\1';  // names are plain ASCII
  return decode_utf8(find_entity(bytes));
}

bool is_noncharacter(char32_t code) {
  return code < 0x09 || code == 0x0B || (code >= 0x0E && code < 0x20) || (code >= 0x7F && code < 0xA0) ||
         (code >= 0xFDD0 && code <= 0xFDEF) || (code & 0xFFFEU) == 0xFFFE;
}

// Resolves a numeric reference by the rules of HTML 5.
std::u32string numeric(char32_t code) {
  if (code == 0 || (code >= 0xD800 && code <= 0xDFFF) || code > 0x10FFFF) return {kReplacement};
  if (code >= 0x80 && code < 0xA0) return {from_windows_1252(code)};
  return is_noncharacter(code) ? std::u32string() : std::u32string{code};
}

// Scans the markup once and writes the text to `out`. The search for a missing end runs once, not again at
// every opening, which would take quadratic time.
class Extractor {
 public:
  explicit Extractor(Text html) : html_(html) {}

  std::u32string run(std::size_t* steps) {
    while (at_ < html_.size()) {
      if (html_[at_] == '<') {
        markup();
      } else if (html_[at_] == '&') {
        reference();
      } else {
        out_ += html_[at_++];
      }
    }
    if (steps != nullptr) *steps += steps_ + html_.size();
    return std::move(out_);
  }

 private:
  bool starts(Text with) const { return html_.substr(at_, with.size()) == with; }
  char32_t peek(std::size_t offset) const { return at_ + offset < html_.size() ? html_[at_ + offset] : 0; }

  // html_.find for positions that only increase.
  std::size_t find_ahead(Text wanted, std::size_t from) {
    std::size_t& found = ahead_.try_emplace(wanted, 0).first->second;
    if (found < from) {
      found = html_.find(wanted, from);
      steps_ += std::min(found, html_.size()) - std::min(from, html_.size());
    }
    return found;
  }

  void keep_until(std::size_t end) {
    out_ += html_.substr(at_, end - at_);
    at_ = std::min(end, html_.size());
  }
  void drop_until(std::size_t end) { at_ = end; }

  // Keeps markup that never closes as text.
  void keep_unclosed() {
    std::size_t end = find_ahead(U">", at_ + 1);
    if (end != kNone) return keep_until(end + 1);
    end = html_.find('<', at_ + 1);
    keep_until(end == kNone ? at_ + 1 : end);
  }

  void drop_through(Text closing, std::size_t from) {
    const std::size_t end = find_ahead(closing, from);
    if (end == kNone) return keep_unclosed();
    drop_until(end + closing.size());
  }

  void markup() {
    if (is_letter(peek(1))) return start_tag();
    if (starts(U"</")) return end_tag();
    if (starts(U"<!--")) return drop_through(U"-->", at_ + 4);
    if (starts(U"<![")) return drop_through(U"]]>", at_ + 3);
    if (starts(U"<?") || starts(U"<!")) return drop_through(U">", at_ + 2);
    out_ += html_[at_++];
  }

  void end_tag() {
    const std::size_t end = find_ahead(U">", at_ + 2);
    if (end == kNone) return keep_unclosed();
    drop_until(end + 1);
  }

  // Finds the end of a start tag: the first ">" outside quoted attribute values; nothing when the tag never
  // closes. Positions that an earlier tag scanned need no new scan: that tag did not close either.
  std::size_t tag_end(std::size_t from) {
    if (seen_.empty()) seen_.resize(2 * html_.size());
    bool value_next = false;
    for (std::size_t i = from; i < html_.size(); ++i) {
      const std::size_t place = 2 * i + (value_next ? 1 : 0);
      if (seen_[place]) return kNone;
      seen_[place] = true;
      ++steps_;
      const char32_t c = html_[i];
      if (c == '>') return i + 1;
      if (value_next && (c == '"' || c == '\'')) {
        const std::size_t opening = i;
        i = html_.find(c, i + 1);
        steps_ += std::min(i, html_.size()) - opening;
        if (i == kNone) return kNone;
      }
      if (!is_space(c)) value_next = c == '=';
    }
    return kNone;
  }

  std::size_t name_end() {
    if (name_end_ <= at_) {
      name_end_ =
          skip(html_, at_ + 1, [](char32_t c) { return c != '>' && c != '/' && c != 0 && !is_space(c); });
      steps_ += name_end_ - at_;
    }
    return name_end_;
  }

  void start_tag() {
    const std::size_t name_end = this->name_end(), end = tag_end(name_end);
    if (end == kNone) return keep_unclosed();
    const std::u32string name = to_lower(html_.substr(at_ + 1, name_end - at_ - 1));
    const bool closed = html_[end - 2] == '/';
    drop_until(end);
    if (!closed && (name == U"script" || name == U"style")) drop_content(name);
  }

  // Drops a script or style up to its own end tag, or to the end of the text.
  void drop_content(const std::u32string& name) {
    if (lower_.empty()) {
      lower_ = to_lower(html_);
      steps_ += html_.size();
    }
    for (std::size_t i = lower_.find(U"</", at_); i != kNone; i = lower_.find(U"</", i + 1)) {
      const std::size_t first = skip(lower_, i + 2, is_space);
      if (Text(lower_).substr(first, name.size()) != name) continue;
      const std::size_t last = skip(lower_, first + name.size(), is_space);
      if (last < lower_.size() && lower_[last] == '>') return drop_until(last + 1);
    }
    drop_until(html_.size());
  }

  void reference() {
    if (peek(1) == '#') return numeric_reference();
    const auto names = [](char32_t c) { return is_alphanumeric(c) || c == '-' || c == '.'; };
    const std::size_t first = at_ + 1;
    std::size_t last = is_letter(peek(1)) ? skip(html_, first, names) : first;
    // A name needs a character after it; at the end of the text its own last "-" or "." is enough.
    if (last == html_.size() && last > first) {
      do {
        --last;
      } while (last > first && is_alphanumeric(html_[last]));
    }
    if (last == first) {  // no reference, or the text ends
      out_ += html_[at_++];
      return;
    }
    const Text name = html_.substr(first, last - first);
    std::u32string text = named(std::u32string(name) + U';');
    if (text.empty()) text = named(name);
    out_ += text.empty() ? std::u32string(html_.substr(at_, last - at_)) : text;
    at_ = html_[last] == ';' ? last + 1 : last;
  }

  void numeric_reference() {
    const Number number = find_number(html_, at_ + 1);
    if (number.first == number.last || number.last == html_.size()) return keep_until(at_ + 2);
    const char32_t code = parse_code(html_.substr(number.first, number.last - number.first), number.base);
    const bool exists = code != 0 && code <= 0x10FFFF && !(code >= 0xD800 && code <= 0xDFFF);
    out_ += !exists ? kReplacement : code >= 0x80 && code < 0xA0 ? from_windows_1252(code) : code;
    at_ = html_[number.last] == ';' ? number.last + 1 : number.last;
  }

  Text html_;
  std::size_t at_ = 0, name_end_ = 0, steps_ = 0;
  std::map<Text, std::size_t> ahead_;  // the last match of find_ahead
  std::vector<bool> seen_;  // positions scanned by tag_end: [2 i + 1] when a value may begin at i, else [2 i]
  std::u32string lower_, out_;
};

// Resolves the longest entity name at the start of `name` and appends the rest of the name.
std::u32string named_prefix(Text name) {
  for (std::size_t size = name.size(); size > 1; --size) {
    std::u32string text = named(name.substr(0, size));
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

std::u32string html_text(std::u32string_view html, std::size_t* steps) {
  return Extractor(html).run(steps);
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
    const Number figures = find_number(text, at + 1);
    const std::size_t first = number ? figures.first : at + 1;
    const std::size_t last = number ? figures.last : std::min(skip(text, first, names), first + 32);
    if (first == last) {
      result += text[at++];
      continue;
    }
    const bool closed = last < text.size() && text[last] == ';';
    if (number) {
      result += numeric(parse_code(text.substr(first, last - first), figures.base));
    } else {
      result += named_prefix(text.substr(first, last - first + (closed ? 1 : 0)));
    }
    at = last + (closed ? 1 : 0);
  }
  return result;
}

}  // namespace lamplighter

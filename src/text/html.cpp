#include "text/html.h"

#include <algorithm>
#include <map>
#include <utility>

#include "text/html_scan.h"
#include "text/html_tags.h"
#include "text/unicode.h"

namespace lamplighter {
namespace {

using namespace html;
using Text = std::u32string_view;

bool is_name(char32_t c) {
  return Text(U"\t\n\r\f />\0", 8).find(c) == kNone;
}

// Scans the markup once and writes the text to `out`. The search for a missing end runs once, not again at
// every opening, which would take quadratic time.
class Extractor {
 public:
  explicit Extractor(Text html) : html_(html), start_tags_(html) {}

  std::u32string run(std::size_t* steps) {
    while (at_ < html_.size()) {
      if (html_[at_] == '<') {
        markup();
      } else if (html_[at_] == '&') {
        reference();
      } else {
        keep_until(at_ + 1);
      }
    }
    if (steps != nullptr) *steps += steps_ + start_tags_.steps() + html_.size();
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

  void keep(Text text) {
    if (!open_tags_.hide_text()) out_ += text;
  }
  void keep_until(std::size_t end) {
    keep(html_.substr(at_, end - at_));
    at_ = std::min(end, html_.size());
  }
  void drop_until(std::size_t end) { at_ = end; }

  // Keeps markup that never closes as text.
  void keep_unclosed() {
    is_last_pass_ = true;
    std::size_t end = find_ahead(U">", at_ + 1);
    if (end != kNone) return keep_until(end + 1);
    end = html_.find('<', at_ + 1);
    keep_until(end == kNone ? at_ + 1 : end);
  }

  struct Place {
    std::size_t first = 0, last = 0;
  };

  // The end of these characters at `at`, which white space may part; 0: others stand there.
  std::size_t end_of_spaced(Text wanted, std::size_t at) {
    for (const char32_t c : wanted) {
      const std::size_t next = skip(html_, at, is_space);
      steps_ += next - at + 1;
      if (next == html_.size() || html_[next] != c) return 0;
      at = next + 1;
    }
    return at;
  }

  // The next place of these characters, for positions that only increase; kNone: there is none.
  Place find_spaced(Text wanted, std::size_t from) {
    Place& found = spaced_[wanted];
    if (found.last != 0 && found.first >= from) return found;
    for (std::size_t at = html_.find(wanted[0], from); at != kNone; at = html_.find(wanted[0], at + 1)) {
      const std::size_t last = end_of_spaced(wanted, at);
      if (last != 0) return found = {at, last};
    }
    steps_ += html_.size() - std::min(from, html_.size());
    return found = {kNone, kNone};
  }

  void comment() {
    const Place end = find_spaced(U"-->", at_ + 4);
    if (end.first == kNone) return keep_unclosed();
    drop_until(end.last);
  }

  // "<![cdata[text]]>" is text; "<![if x]>" and other sections are dropped.
  void section() {
    const std::size_t name = at_ + 3;
    const std::u32string word = to_lower(html_.substr(name, skip(html_, name, is_letter) - name));
    const bool is_condition = word == U"if" || word == U"else" || word == U"endif";
    const Place end = find_spaced(is_condition ? U"]>" : U"]]>", name);
    if (end.first == kNone) return keep_unclosed();
    if (word == U"cdata" && html_[name + word.size()] == '[') {
      const std::size_t text = name + word.size() + 1;
      out_ += html_.substr(text, end.first - text);
    }
    drop_until(end.last);
  }

  void drop_through(Text closing, std::size_t from) {
    const std::size_t end = find_ahead(closing, from);
    if (end == kNone) return keep_unclosed();
    drop_until(end + closing.size());
  }

  void markup() {
    if (is_letter(peek(1))) return start_tag();
    if (starts(U"</")) return end_tag();
    if (starts(U"<!--")) return comment();
    if (starts(U"<![")) return section();
    if (starts(U"<?") || starts(U"<!")) return drop_through(U">", at_ + 2);
    keep_until(at_ + 1);
  }

  void end_tag() {
    const std::size_t end = find_ahead(U">", at_ + 2);
    if (end == kNone) return keep_unclosed();
    const bool is_parted = is_space(peek(2));  // "</ b>" closes, "</ b x>" is a comment
    const std::size_t first = skip(html_, at_ + 2, is_space), last = skip(html_, first, is_name);
    if (!is_parted || skip(html_, last, is_space) == end)
      open_tags_.close(to_lower(html_.substr(first, last - first)));
    drop_until(end + 1);
  }

  std::size_t name_end() {
    if (name_end_ <= at_) {
      name_end_ = skip(html_, at_ + 1, is_name);
      steps_ += name_end_ - at_;
    }
    return name_end_;
  }

  void start_tag() {
    const std::size_t name_end = this->name_end();
    const StartTags::End end = start_tags_.find(name_end);
    if (end.at == kNone) return keep_unclosed();
    std::u32string name = to_lower(html_.substr(at_ + 1, name_end - at_ - 1));
    drop_until(end.at);
    if (end.is_empty) return;
    if (name == U"script" || name == U"style") return drop_content(name);
    open_tags_.open(std::move(name));
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
    const auto names = [](char32_t c) { return (is_letter(c) || is_figure(c)) || c == '-' || c == '.'; };
    const std::size_t first = at_ + 1;
    std::size_t last = is_letter(peek(1)) ? skip(html_, first, names) : first;
    // A name needs a character after it; at the end of the text its own last "-" or "." is enough.
    if (last == html_.size() && last > first) {
      do {
        --last;
      } while (last > first && (is_letter(html_[last]) || is_figure(html_[last])));
    }
    if (last == first) {  // no reference, or the text ends
      const bool is_last_letter = is_letter(peek(1)) && html_.size() - at_ == 2;
      if (!is_last_letter) keep(U"&");  // Python's parser loses it in front of one last letter
      ++at_;
      return;
    }
    const Text name = html_.substr(first, last - first);
    std::u32string text = named(std::u32string(name) + U';');
    if (text.empty()) text = named(name);
    keep(text.empty() ? html_.substr(at_, last - at_) : Text(text));
    at_ = html_[last] == ';' ? last + 1 : last;
  }

  // Python's parser goes over the text twice: a "&#" without a number ends a pass, and where the last one
  // ends, or no ";" follows, what is left stays as it is, with its tags.
  void keep_broken_number() {
    const bool goes_on = !is_last_pass_ && find_ahead(U";", at_ + 1) != kNone;
    is_last_pass_ = true;
    keep_until(goes_on ? at_ + 2 : html_.size());
  }

  void numeric_reference() {
    const Number number = find_number(html_, at_ + 1);
    const bool is_closed = number.last < html_.size() && !is_hexadecimal(html_[number.last]);
    if (number.first == number.last || !is_closed) return keep_broken_number();
    const char32_t code = parse_code(html_.substr(number.first, number.last - number.first), number.base);
    const bool exists = code != 0 && code <= 0x10FFFF && !(code >= 0xD800 && code <= 0xDFFF);
    const char32_t shown = exists ? from_windows_1252(code) : kReplacement;
    keep({&shown, 1});
    at_ = html_[number.last] == ';' ? number.last + 1 : number.last;
  }

  Text html_;
  std::size_t at_ = 0, name_end_ = 0, steps_ = 0;
  bool is_last_pass_ = false;
  std::map<Text, std::size_t> ahead_;  // the last match of find_ahead
  std::map<Text, Place> spaced_;       // and of find_spaced
  StartTags start_tags_;
  OpenTags open_tags_;
  std::u32string lower_, out_;
};

}  // namespace

std::u32string html_text(std::u32string_view html, std::size_t* steps) {
  return Extractor(html).run(steps);
}

}  // namespace lamplighter

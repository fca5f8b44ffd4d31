#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace lamplighter::html {

// Where start tags end, by the expressions of Python's html.parser (3.11). Attributes that an earlier tag
// scanned in vain need no new scan: that tag did not close either.
class StartTags {
 public:
  explicit StartTags(std::u32string_view html) : html_(html) {}

  struct End {
    std::size_t at;  // behind ">"; kNone: the tag never closes
    bool is_empty;   // "<a/>" has no content
  };
  // name_end: behind the tag's name.
  End find(std::size_t name_end);
  std::size_t steps() const { return steps_; }  // characters that were looked at, each time

 private:
  bool begins_attribute(std::size_t at) const;
  std::size_t attribute_end(std::size_t at);
  std::size_t value_end(std::size_t first_sign, std::size_t name_end);
  std::size_t gaps_end(std::size_t at);
  template <class Set>
  std::size_t pass(std::size_t at, Set set);

  std::u32string_view html_;
  std::size_t steps_ = 0;
  std::vector<bool> seen_;  // attributes that begin here
};

// The tags that are open, as BeautifulSoup nests them: an end tag also closes what was opened behind its
// start tag.
class OpenTags {
 public:
  void open(std::u32string name);
  void close(const std::u32string& name);
  // In these tags text is annotation or a pattern, and is left out.
  bool hide_text() const { return hidden_ > 0; }

 private:
  std::vector<std::u32string> names_;
  std::map<std::u32string, std::size_t> counts_;
  std::size_t hidden_ = 0;
};

}  // namespace lamplighter::html

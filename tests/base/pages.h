#pragma once

#include <string>

#include "base/json.h"
#include "lamplighter/error.h"

// Helpers for tests of HTML pages.
namespace lamplighter::test {

inline std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

// Extracts the page's data like a browser: the block ends at the first end of a script.
inline Json data_of(const std::string& page) {
  const std::string block = R"(<script type="application/json" id="data">)";
  const std::size_t begin = page.find(block) + block.size();
  return parse_json(page.substr(begin, page.find("</script", begin) - begin), "page", ExitCode::input);
}

}  // namespace lamplighter::test

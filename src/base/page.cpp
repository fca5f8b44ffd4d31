#include "base/page.h"

#include <algorithm>
#include <array>

#include "base/base64.h"
#include "base/utf8.h"

namespace lamplighter {

// Escapes "<", which in JSON occurs in strings only.
std::string script_text(const Json& json) {
  const std::string text = to_text(json);
  std::string safe;
  safe.reserve(text.size());
  for (const char letter : text) {
    if (letter == '<') {
      safe += "\\u003c";
    } else {
      safe += letter;
    }
  }
  return safe;
}

std::string html_text(std::string_view text) {
  static constexpr std::array<std::pair<char, const char*>, 5> kNames{
      {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&#39;"}}};
  std::string safe;
  for (const char letter : encode_utf8(decode_utf8(text))) {
    const auto name =
        std::find_if(kNames.begin(), kNames.end(), [&](const auto& one) { return one.first == letter; });
    if (name == kNames.end()) {
      safe += letter;
    } else {
      safe += name->second;
    }
  }
  return safe;
}

std::string png_source(std::string_view png) {
  return "data:image/png;base64," + base64(png);
}

std::string fill_page(std::string_view page,
                      const std::vector<std::pair<std::string_view, std::string>>& texts) {
  std::vector<std::pair<std::size_t, std::size_t>> marks;  // offset in the page, index of the text
  marks.reserve(texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i) marks.emplace_back(page.find(texts[i].first), i);
  std::sort(marks.begin(), marks.end());
  std::string filled;
  std::size_t done = 0;
  for (const auto& [at, index] : marks) {
    filled += page.substr(done, at - done);
    filled += texts[index].second;
    done = at + texts[index].first.size();
  }
  return filled += page.substr(done);
}

}  // namespace lamplighter

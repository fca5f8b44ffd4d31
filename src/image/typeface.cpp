#include "image/typeface.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "base/utf8.h"
#include "image/helvetica.h"
#include "image/lettering.h"

namespace lamplighter {
namespace {

// Number of characters from `begin` on that fit into `width`, at least one.
std::size_t count_fitting(const std::u32string& text, Typeface typeface, double size, double width) {
  std::size_t fits = 1, more = text.size();
  while (fits < more) {
    const std::size_t middle = (fits + more + 1) / 2;
    if (width_of(encode_utf8(std::u32string_view(text).substr(0, middle)), typeface, size) <= width) {
      fits = middle;
    } else {
      more = middle - 1;
    }
  }
  return fits;
}

void wrap_line(std::u32string line, Typeface typeface, double size, double width,
               std::vector<std::string>& lines) {
  for (;;) {
    std::size_t end = line.empty() ? 0 : count_fitting(line, typeface, size, width);
    std::size_t next = end;
    if (end < line.size()) {
      const std::size_t blank = line.rfind(U' ', end), mark = line.find_last_of(U":,", end - 1);
      if (blank != std::u32string::npos && blank > 0) {
        end = blank;
        next = blank + 1;
      } else if (mark != std::u32string::npos) {
        next = end = mark + 1;
      }
    }
    lines.push_back(encode_utf8(std::u32string_view(line).substr(0, end)));
    if (next >= line.size()) return;
    line.erase(0, next);
  }
}

}  // namespace

int dot_scale(double size) {
  return std::max(1, static_cast<int>(std::lround(size / kLetterHeight)));
}

double width_of(const std::string& text, Typeface typeface, double size) {
  if (typeface == Typeface::dots) return text_width(text, dot_scale(size));
  return helvetica_width(encode_winansi(text)) * size;
}

std::vector<std::string> wrap_text(const std::string& text, Typeface typeface, double size, double width) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);)
    wrap_line(decode_utf8(line), typeface, size, width, lines);
  if (lines.empty()) lines.emplace_back();
  return lines;
}

}  // namespace lamplighter

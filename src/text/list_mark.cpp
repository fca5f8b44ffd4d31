#include "text/list_mark.h"

#include <algorithm>
#include <array>

namespace lamplighter {
namespace {

// Ends a mark behind `at` bytes when a blank and a text follow.
ListMark ended(ListMark mark, std::string_view line, std::size_t at) {
  const std::size_t text = line.find_first_not_of(" \t", at);
  if (text == at || text == std::string_view::npos || line[text] == '\r') return {};
  mark.size = text;
  return mark;
}

ListMark find_sign(std::string_view line, std::size_t begin) {
  constexpr std::array<std::string_view, 6> kBullets{"\u2022", "\u2023", "\u25E6",
                                                     "\u25AA", "\u25CF", "\u00B7"};
  ListMark mark;
  if (std::string_view("-*+>").find(line[begin]) != std::string_view::npos) {
    mark.kind = line[begin];
    return ended(mark, line, begin + 1);
  }
  mark.kind = 'o';
  for (const std::string_view bullet : kBullets) {
    if (line.substr(begin, bullet.size()) == bullet) return ended(mark, line, begin + bullet.size());
  }
  return {};
}

}  // namespace

ListMark find_list_mark(std::string_view line) {
  constexpr std::size_t kDigits = 5;
  std::size_t at = line.find_first_not_of(" \t");
  if (at == std::string_view::npos) return {};
  if (const ListMark sign = find_sign(line, at); sign.kind != 0) return sign;
  const bool opens = line[at] == '(';
  if (opens) ++at;
  ListMark mark;
  const std::size_t begin = at;
  while (at < line.size() && at - begin < kDigits && line[at] >= '0' && line[at] <= '9')
    mark.number = 10 * mark.number + static_cast<std::size_t>(line[at++] - '0');
  mark.kind = at > begin ? '1' : 'a';
  if (at == begin && at < line.size()) {
    const int letter = (line[at] | 0x20) - 'a';
    if (letter >= 0 && letter < 26) mark.number = static_cast<std::size_t>(letter) + 1;
    if (mark.number > 0) ++at;
  }
  if (at == begin || at == line.size()) return {};
  mark.end = line[at];
  if (mark.end == '\t' && !opens && mark.kind == '1') return ended(mark, line, at);
  const bool ends = mark.end == ')' || (!opens && (mark.end == '.' || (mark.kind == '1' && mark.end == ':')));
  return ends ? ended(mark, line, at + 1) : ListMark();
}

bool continues_list(const ListMark& mark, const ListMark& next) {
  if (mark.kind == 0 || mark.kind != next.kind || mark.end != next.end) return false;
  const bool is_counted = mark.kind == '1' || mark.kind == 'a';
  return !is_counted || next.number == mark.number + 1 || (mark.kind == '1' && next.number == mark.number);
}

}  // namespace lamplighter

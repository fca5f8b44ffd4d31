#include "base/suggestion.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace lamplighter {
namespace {

// Insertions, deletions and replacements that turn one word into the other.
std::size_t edit_distance(const std::string& from, const std::string& to) {
  std::vector<std::size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < from.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < to.size(); ++j) {
      const std::size_t replaced = diagonal + (from[i] == to[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string did_you_mean(const std::string& word, const std::vector<std::string>& known) {
  constexpr std::size_t kLongest = 64;  // no word of a list is longer
  if (word.size() > kLongest) return "";
  std::string best;
  std::size_t least = 3;  // more than two mistakes are no slip
  for (const std::string& name : known) {
    const std::size_t distance = edit_distance(word, name);
    if (distance < least && distance < name.size()) least = distance, best = name;
  }
  return best.empty() ? "" : "; did you mean " + best + "?";
}

std::string list_of(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  return list;
}

}  // namespace lamplighter

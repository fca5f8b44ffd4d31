#include "base/suggestion.h"

#include <algorithm>
#include <numeric>

namespace lamplighter {
namespace {

// Insertions, deletions, replacements and swaps of neighbours that turn one word into the other.
std::size_t edit_distance(const std::string& from, const std::string& to) {
  std::vector<std::size_t> before(to.size() + 1), last(to.size() + 1), row(to.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < from.size(); ++i) {
    before.swap(last);
    last.swap(row);
    row[0] = i + 1;
    for (std::size_t j = 0; j < to.size(); ++j) {
      const std::size_t replaced = last[j] + (from[i] == to[j] ? 0 : 1);
      row[j + 1] = std::min({replaced, row[j] + 1, last[j + 1] + 1});
      if (i > 0 && j > 0 && from[i] == to[j - 1] && from[i - 1] == to[j])
        row[j + 1] = std::min(row[j + 1], before[j - 1] + 1);
    }
  }
  return row.back();
}

}  // namespace

std::string did_you_mean(const std::string& word, const std::vector<std::string>& known, std::size_t most) {
  constexpr std::size_t kLongest = 64;  // no word of a list is longer
  if (word.size() > kLongest) return "";
  std::string best;
  std::size_t least = most + 1;
  for (const std::string& name : known) {
    if (std::max(word.size(), name.size()) - std::min(word.size(), name.size()) > most) continue;
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

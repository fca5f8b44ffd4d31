#include "propose/lookup/ngram_pool.h"

#include <algorithm>

namespace lamplighter {

void NgramPool::add(std::int64_t token, const std::int64_t* tail) {
  if (token < 0 || token >= tokens) return;
  std::int64_t* const begin = tails + token * guesses * length;
  const auto nth = [&](std::int64_t place) { return begin + place * length; };
  std::int64_t place = 0;  // of the one that makes room
  while (place < guesses - 1 && *nth(place) >= 0 && !std::equal(tail, tail + length, nth(place))) ++place;
  if (*nth(place) >= 0) {
    const bool repeated = std::equal(tail, tail + length, nth(place));
    if (!repeated) place = 0;
    std::int64_t end = place + 1;
    while (end < guesses && *nth(end) >= 0) ++end;
    std::copy(nth(place + 1), nth(end), nth(place));
    place = end - 1;
  }
  std::copy(tail, tail + length, nth(place));
}

void NgramPool::add_runs(const std::int64_t* run, std::int64_t from, std::int64_t count) {
  for (std::int64_t last = std::max(from, length); last < count; ++last)
    add(run[last - length], run + last - length + 1);
}

std::vector<std::vector<std::int64_t>> NgramPool::of(std::int64_t token) const {
  std::vector<std::vector<std::int64_t>> all;
  if (token < 0 || token >= tokens) return all;
  const std::int64_t* tail = tails + token * guesses * length;
  for (std::int64_t place = 0; place < guesses && *tail >= 0; ++place, tail += length)
    all.emplace_back(tail, tail + length);
  return all;
}

void NgramWindow::learn(std::int64_t last, const std::int64_t* next, NgramPool& pool) const {
  std::vector<std::int64_t> tail(static_cast<std::size_t>(length));
  for (std::int64_t column = 0; column < columns; ++column) {
    for (std::int64_t level = 1; level < length; ++level)
      tail[static_cast<std::size_t>(level - 1)] = at(level, column);
    tail.back() = next[column];
    pool.add(column == 0 ? last : at(0, column - 1), tail.data());
  }
  std::copy(levels + columns, levels + length * columns, levels);  // up by a level
  std::copy(next, next + columns, levels + (length - 1) * columns);
  std::copy(levels + 1, levels + columns, levels);  // the last token stands in front of level 0
}

}  // namespace lamplighter

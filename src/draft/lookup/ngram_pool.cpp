#include "draft/lookup/ngram_pool.h"

#include <algorithm>

namespace lamplighter {

void NgramPool::add(std::int64_t token, const std::int64_t* tail) {
  if (token < 0 || token >= tokens) return;
  std::int64_t* const begin = tails + token * guesses * length;
  const auto nth = [&](std::int64_t index) { return begin + index * length; };
  std::int64_t index = 0;  // of the tail that makes room
  while (index < guesses - 1 && *nth(index) >= 0 && !std::equal(tail, tail + length, nth(index))) ++index;
  if (*nth(index) >= 0) {
    const bool repeated = std::equal(tail, tail + length, nth(index));
    if (!repeated) index = 0;
    std::int64_t end = index + 1;
    while (end < guesses && *nth(end) >= 0) ++end;
    std::copy(nth(index + 1), nth(end), nth(index));
    index = end - 1;
  }
  std::copy(tail, tail + length, nth(index));
}

void NgramPool::add_runs(const std::int64_t* run, std::int64_t from, std::int64_t count) {
  for (std::int64_t last = std::max(from, length); last < count; ++last)
    add(run[last - length], run + last - length + 1);
}

std::vector<std::vector<std::int64_t>> NgramPool::of(std::int64_t token) const {
  std::vector<std::vector<std::int64_t>> all;
  if (token < 0 || token >= tokens) return all;
  const std::int64_t* tail = tails + token * guesses * length;
  for (std::int64_t index = 0; index < guesses && *tail >= 0; ++index, tail += length)
    all.emplace_back(tail, tail + length);
  return all;
}

void NgramWindow::update(std::int64_t last, const std::int64_t* next, NgramPool& pool) const {
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

#pragma once

#include <cstdint>
#include <vector>

namespace lamplighter {

// Tokens that followed a token before (lookahead decoding, Fu et al. 2024, arXiv 2402.02057, section 3): for
// every token at most G tails of N tokens, the newest last. A view: the numbers belong to the method.
struct NgramPool {
  std::int64_t* tails = nullptr;  // [tokens, G, N]; unused ones begin with -1
  std::int64_t tokens = 0, guesses = 0, length = 0;

  // A repeated tail moves to the end, and a full list drops its oldest one. Tokens outside the pool are
  // ignored.
  void add(std::int64_t token, const std::int64_t* tail);
  // All runs of N + 1 tokens that end behind `from`.
  void add_runs(const std::int64_t* run, std::int64_t from, std::int64_t count);
  // The tails of a token, the oldest first.
  std::vector<std::vector<std::int64_t>> of(std::int64_t token) const;
};

// Guesses that Jacobi iteration renews: levels 0 .. N - 1 of W tokens each. Column i of level l is a guess
// for position i + l behind the last token. That token stands in front of level 0, which so has W - 1
// guesses. A view.
struct NgramWindow {
  std::int64_t* levels = nullptr;  // [N, W]; the last entry of level 0 is not read
  std::int64_t length = 0, columns = 0;

  std::int64_t& at(std::int64_t level, std::int64_t column) const { return levels[level * columns + column]; }
  // next [W]: what follows the last level, column by column; `last`: the token in front. The columns go into
  // the pool as runs, and every level moves up by one.
  void update(std::int64_t last, const std::int64_t* next, NgramPool& pool) const;
};

}  // namespace lamplighter

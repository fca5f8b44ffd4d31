#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/bench.h"

// Candidates for tuning: draft windows, and distances between rows decoded in parallel.
namespace lamplighter {

struct CandidateBounds {
  int max_nodes = 8;         // most drafts in a window
  std::int64_t columns = 1;  // of the image
  // Distance between parallel rows: the fixed one for methods with windows, else the least one to try.
  std::optional<std::int64_t> ahead = {};
};

// Powers of two up to half a row, and that half, which is the default of methods. Begins with `least`. Throws
// Error(ExitCode::usage) when `least` is larger than half a row.
std::vector<std::int64_t> row_distances(std::int64_t columns, std::int64_t least = 1);

// Lists ar, then variants of a method with windows of 1, 2, ... drafts or at every distance between rows. A
// row-parallel method without a window is zipar. `method` as for parse_method. Throws Error(ExitCode::usage).
std::vector<BenchMethod> tuning_candidates(const std::string& method, const CandidateBounds& bounds);

}  // namespace lamplighter

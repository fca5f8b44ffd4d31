#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/bench.h"

// What is let draw pictures to find the fastest of a kind: windows of drafts, and rows side by side.
namespace lamplighter {

struct CandidateBounds {
  int max_nodes = 8;         // most drafts of a window
  std::int64_t columns = 1;  // of a picture
  // Of rows side by side: the distance between those that have windows, else the least one that is tried.
  std::optional<std::int64_t> ahead = {};
};

// Powers of two up to half of a row, and that half, which is a method's own choice; the first is `least`.
// Throws Error(ExitCode::usage) for a least one that is longer.
std::vector<std::int64_t> row_distances(std::int64_t columns, std::int64_t least = 1);

// ar, then a method that keeps windows or opens rows: with windows of 1, 2, ... drafts, at every distance
// between rows. No window at all is zipar. `method` as parse_method takes it. Throws Error(ExitCode::usage).
std::vector<BenchMethod> tuning_candidates(const std::string& method, const CandidateBounds& bounds);

}  // namespace lamplighter

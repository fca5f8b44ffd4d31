#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/attend/attend.h"

namespace lamplighter {
// Internal linkage: included by files compiled for different instruction sets.
namespace {

constexpr int64_t kQueryBlock = 32;  // queries that share one pass over the keys and values
constexpr int64_t kMostLanes = 16;   // of any vector vocabulary

// Working memory of one thread.
struct AttendScratch {
  void* queries;  // [kQueryBlock][head_dim] of the operator's dtype
  float* scores;  // [kQueryBlock][stride]
  int64_t stride;
  void* keys;  // of a rounded cache: the item's keys and values, [most_keys()][head_dim] each
  void* values;
};

inline int64_t most_keys(const AttendArgs& args) {
  int64_t most = 0;
  for (int64_t s = 0; s < args.sequences; ++s) most = args.starts[s] > most ? args.starts[s] : most;
  return most + args.rows;
}

// Between the score rows of two queries: an odd number of cache lines, so that equal columns fall into
// different sets of the cache.
inline int64_t score_stride(const AttendArgs& args) {
  const int64_t lines = (most_keys(args) + kMostLanes - 1) / kMostLanes;
  return (lines + 1 - lines % 2) * kMostLanes;
}

inline AttendScratch split_scratch(const AttendArgs& args, void* scratch) {
  AttendScratch parts{};
  parts.queries = scratch;
  parts.scores = static_cast<float*>(scratch) + kQueryBlock * args.head_dim;
  parts.stride = score_stride(args);
  if (args.rounded_cache) {
    float* expanded = parts.scores + kQueryBlock * parts.stride;
    parts.keys = expanded;
    parts.values = expanded + most_keys(args) * args.head_dim;
  }
  return parts;
}

}  // namespace
}  // namespace lamplighter

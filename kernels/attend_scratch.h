#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/attend.h"

namespace lamplighter {
// Internal linkage: included by files compiled for different instruction sets.
namespace {

constexpr int64_t kQueryBlock = 32;  // queries that share one pass over the keys and values
constexpr int64_t kKeyBlock = 64;    // keys turned at a time; a multiple of every vector length

// Working memory of one thread.
struct AttendScratch {
  float* queries;  // [kQueryBlock][head_dim] words
  uint32_t* keys;  // [head_dim][kKeyBlock] words
  float* scores;   // [kQueryBlock][stride]
  int64_t stride;
};

inline int64_t most_keys(const AttendArgs& args) {
  int64_t most = 0;
  for (int64_t s = 0; s < args.sequences; ++s) most = args.lengths[s] > most ? args.lengths[s] : most;
  return most + args.rows;
}

// Between the score rows of two queries: an odd number of cache lines, so that equal columns fall into
// different sets of the cache.
inline int64_t score_stride(const AttendArgs& args) {
  return (most_keys(args) + kKeyBlock - 1) / kKeyBlock * kKeyBlock + 16;
}

inline AttendScratch split_scratch(const AttendArgs& args, void* scratch) {
  AttendScratch parts{};
  parts.queries = static_cast<float*>(scratch);
  parts.keys = reinterpret_cast<uint32_t*>(parts.queries + kQueryBlock * args.head_dim);
  parts.scores = reinterpret_cast<float*>(parts.keys + kKeyBlock * args.head_dim);
  parts.stride = score_stride(args);
  return parts;
}

}  // namespace
}  // namespace lamplighter

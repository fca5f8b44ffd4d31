#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/attend/attend.h"

// How CUDA's tensor-core attention (cuda_span.h) divides a call: a function of shapes alone, so that a
// captured graph fits every length.
namespace lamplighter {

constexpr int kTileKeys = 32;                          // cache indices that are in work at once
constexpr int kTileQueries = 16;                       // (row, head) pairs of one warp
constexpr int kMostQueries = 192;                      // of one block
constexpr int kTileBytes = 1 << 15;                    // shared memory for tiles of keys and values
constexpr int kMostSpanKeys = 256;                     // of one block
constexpr int kMostTiles = kMostSpanKeys / kTileKeys;  // of a span
constexpr int kSpanSharedBytes = kTileBytes + kMostTiles * 4;
template <int kHead, int kSlices>  // of a block of attend_span_kernel
constexpr int kMostThreads = kSlices == 1 ? 32 * kMostQueries / kTileQueries : 128 * 128 / kHead;

constexpr int kOneKeys = 8;  // keys of a lane of a block for one query (cuda_one.h)
template <int kHead>
constexpr int kOneThreads = kHead == 64 ? 512 : 256;  // kHead / 8 of them share kOneKeys keys
template <int kHead>
constexpr int kOneSpan = kOneKeys * 8 * kOneThreads<kHead> / kHead;  // keys
constexpr int kMostOneSpans = 12;  // more of them take longer than tensor cores do, measured on an H200

// Rows [first, first + count) of every sequence; all their queries of one key/value head fit into one block.
struct AttendPass {
  int first;
  int count;
  int group;    // query heads per key/value head
  int queries;  // of one key/value head; query q: row first + q / group, head q % group of the group
  int keys;     // cache indices per span, a block's share
  int splits;   // spans
  int threads;
  bool one;    // a single query, for attend_one_kernel
  int slices;  // warps that share 16 queries; each sums an equal part of the features
};

// Results of one span for one query.
struct SpanTotals {
  float maximum;  // of the scores in units of log 2, minus infinity when the query sees no key of the span
  float total;    // sum of the weights 2^(score - maximum)
};

// For items ((sequence * rows of a pass + row) * heads + head) * splits + span.
struct SpanResults {
  float* sums;  // [items, head_dim]: values times weights
  SpanTotals* totals;
};

inline bool attend_has_spans(const AttendArgs& args) {
  const auto aligned = [](const void* p) { return reinterpret_cast<uintptr_t>(p) % 16 == 0; };
  return args.type != ElementType::kFloat32 && !args.rounded_cache &&
         (args.head_dim == 64 || args.head_dim == 128) && args.heads / args.kv_heads <= kMostQueries &&
         aligned(args.qkv) && aligned(args.keys) && aligned(args.values) && aligned(args.rotary) &&
         aligned(args.out);
}

// Keys per span: short ones fill the device when caches are small, long ones keep the traffic of partial sums
// small. They depend on max_length alone, so a row's bits do not depend on batch or, from two queries on, on
// rows.
inline AttendPass attend_pass(const AttendArgs& args, int64_t first) {
  AttendPass pass{};
  pass.group = static_cast<int>(args.heads / args.kv_heads);
  const int64_t most = kMostQueries / pass.group;
  pass.first = static_cast<int>(first);
  pass.count = static_cast<int>(args.rows - first < most ? args.rows - first : most);
  pass.queries = pass.count * pass.group;
  const int keys_of_one = args.head_dim == 64 ? kOneSpan<64> : kOneSpan<128>;
  pass.one = args.rows * pass.group == 1 && args.max_length <= keys_of_one * kMostOneSpans;
  pass.keys = pass.one ? keys_of_one : args.max_length <= 512 ? 128 : kMostSpanKeys;
  pass.splits = static_cast<int>((args.max_length + pass.keys - 1) / pass.keys);
  const int tiles = (pass.queries + kTileQueries - 1) / kTileQueries;
  const int64_t features = tiles * args.head_dim;
  pass.slices = features <= 128 ? 4 : features <= 256 ? 2 : 1;
  pass.threads = 32 * tiles * pass.slices;
  if (pass.one) pass.threads = args.head_dim == 64 ? kOneThreads<64> : kOneThreads<128>;
  return pass;
}

// Divides `memory`; *bytes is what that takes.
inline SpanResults span_results(const AttendArgs& args, void* memory, size_t* bytes) {
  const AttendPass pass = attend_pass(args, 0);
  const int64_t items = args.sequences * pass.count * args.heads * pass.splits;
  SpanResults results{};
  results.sums = static_cast<float*>(memory);
  results.totals = reinterpret_cast<SpanTotals*>(results.sums + items * args.head_dim);
  *bytes =
      static_cast<size_t>(items) * (static_cast<size_t>(args.head_dim) * sizeof(float) + sizeof(SpanTotals));
  return results;
}

// For calls that attend_has_spans() takes; `workspace` as span_results() divides it.
void attend_spans_cuda(const AttendArgs& args, void* workspace, void* stream);

}  // namespace lamplighter

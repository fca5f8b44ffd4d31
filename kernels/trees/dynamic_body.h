#pragma once

#include "kernels/sampling/sampling_body.h"
#include "kernels/trees/dynamic.h"

// The operators of dynamic trees for one row or image, written once for every executor; meanings in
// kernels/trees/dynamic.h.
namespace lamplighter::dynamic {

// Memory of one row of expand_dynamic, and of one image's frontier.
struct Scratch {
  float* keys;    // [V]
  int* ids;       // [V]
  int* selected;  // [max(V, candidates)]
};

LAMPLIGHTER_INLINE Scratch scratch_at(void* memory, int64_t vocabulary) {
  float* keys = static_cast<float*>(memory);
  int* ids = reinterpret_cast<int*>(keys + vocabulary);
  return {keys, ids, ids + vocabulary};
}

// The indices of the k largest values, rising, to `out` (room for n); ties by smaller index. 1 <= k <= n; no
// NaN, no -0.
template <class Executor>
LAMPLIGHTER_INLINE void select_largest(Executor& executor, const float* values, int n, int k, int* out) {
  if (k == n) {
    executor.for_each(n, [=](int i) { out[i] = i; });
    return;
  }
  const auto end = sampling::select_kth(
      executor, n, [=](int i) { return values[i]; }, k, out);
  const float floor = end.value;
  const uint32_t ties = static_cast<uint32_t>(k) - end.before;  // >= 1 of those at the floor are in
  const int last = executor
                       .template scan<uint32_t>(
                           n, ties - 1, [=](int i) { return static_cast<uint32_t>(values[i] == floor); })
                       .index;
  executor.compact(
      n, [=](int i) { return (values[i] > floor) | ((values[i] == floor) & (i <= last)); }, out);
}

// Rank of the i-th of n values when they are sorted, largest first, ties by smaller index.
template <class Value>
LAMPLIGHTER_INLINE int rank_of(int i, int n, Value value) {
  int rank = 0;
  for (int j = 0; j < n; ++j) {
    rank += static_cast<int>((value(j) > value(i)) | ((value(j) == value(i)) & (j < i)));
  }
  return rank;
}

// room: vocabulary floats, for rows that are no probabilities.
template <class Executor>
LAMPLIGHTER_INLINE void expand_row(Executor& executor, const ExpandArgs& args, int64_t row, void* memory,
                                   float* room) {
  const int n = static_cast<int>(args.rows.vocabulary);
  const int k = static_cast<int>(args.k);
  const Scratch scratch = scratch_at(memory, args.rows.vocabulary);
  const float* p = sampling::read_probabilities(executor, args.rows, row, room);
  int64_t* tokens = args.tokens + row * args.k;
  float* pool_scores = args.pool_scores + row * args.k;
  const float score = args.scores[row];
  int* ids = scratch.ids;
  int* selected = scratch.selected;
  float* keys = scratch.keys;
  const auto possible = [=](int i) { return (p[i] > 0.0F) & (p[i] < sampling::kInfinity); };
  const int m = executor.compact(n, possible, ids);
  const int taken = m < k ? m : k;
  if (taken > 0) {
    executor.for_each(m, [=](int i) { keys[i] = p[ids[i]]; });
    select_largest(executor, keys, m, taken, selected);
    executor.for_each(taken, [=](int i) {
      const int rank = rank_of(i, taken, [=](int j) { return keys[selected[j]]; });
      const auto gain = static_cast<float>(natural_log(static_cast<double>(keys[selected[i]])));
      tokens[rank] = ids[selected[i]];
      pool_scores[rank] = score + (gain < 0.0F ? gain : 0.0F) + 0.0F;
    });
  }
  if (taken == k) return;
  executor.compact(
      n, [=](int i) { return !possible(i); }, selected);
  executor.for_each(k - taken, [=](int i) {
    tokens[taken + i] = selected[i];
    pool_scores[taken + i] = -sampling::kInfinity;
  });
}

template <class Executor>
LAMPLIGHTER_INLINE void choose_frontier(Executor& executor, const ExpandArgs& args, int64_t image,
                                        int* selected) {
  const int k = static_cast<int>(args.k);
  const int candidates = static_cast<int>(args.rows.rows * args.k);
  const float* scores = args.pool_scores + image * candidates;
  int64_t* frontier = args.frontier + image * args.k;
  select_largest(executor, scores, candidates, k, selected);
  executor.for_each(
      k, [=](int i) { frontier[rank_of(i, k, [=](int j) { return scores[selected[j]]; })] = selected[i]; });
}

// Pool index of the parent of pool element `index`, -1 for the root.
LAMPLIGHTER_INLINE int parent_in_pool(const int64_t* frontiers, int k, int index) {
  if (index < k) return -1;
  const int pass = (index - k) / (k * k);
  const int path = (index - k) % (k * k) / k;
  const int64_t candidate = frontiers[pass * k + path];
  const int size = pass == 0 ? k : k * k;
  if (candidate < 0 || candidate >= size) return -1;
  return (pass == 0 ? 0 : k + (pass - 1) * k * k) + static_cast<int>(candidate);
}

// Node of a pool element: 1 + its position in `kept`; 0 for the root and for what is not kept.
LAMPLIGHTER_INLINE int node_of(const int* kept, int count, int index) {
  for (int i = 0; i < count; ++i) {
    if (kept[i] == index) return i + 1;
  }
  return 0;
}

// kept: room for `pool` ints.
template <class Executor>
LAMPLIGHTER_INLINE void rerank_image(Executor& executor, const RerankArgs& args, int64_t image, int* kept) {
  const int pool = static_cast<int>(args.pool);
  const int nodes = static_cast<int>(args.nodes);
  const int k = static_cast<int>(args.k);
  const float* scores = args.scores + image * args.pool;
  const int64_t* pool_tokens = args.pool_tokens + image * args.pool;
  const int64_t* frontiers = args.frontiers + image * args.passes * args.k;
  const int64_t base = image * (args.nodes + 1);
  const int possible = executor.compact(
      pool, [=](int i) { return scores[i] > -sampling::kInfinity; }, kept);
  const int count = possible < nodes ? possible : nodes;
  if (nodes > 0 && possible > nodes) select_largest(executor, scores, pool, nodes, kept);
  int64_t* tokens = args.tokens + base;
  int64_t* parents = args.parents + base;
  int64_t* depths = args.depths + base;
  int64_t* mask = args.mask + base;
  int64_t* pool_index = args.pool_index + image * args.nodes;
  executor.for_each(nodes + 1, [=](int node) {
    const int index = node > 0 && node <= count ? kept[node - 1] : -1;
    uint64_t seen = uint64_t{1} << node;
    int parent = index < 0 ? -1 : parent_in_pool(frontiers, k, index);
    const int first = node_of(kept, count, parent);
    int64_t depth = index < 0 ? 0 : 1;
    for (; parent >= 0; parent = parent_in_pool(frontiers, k, parent)) {
      seen |= uint64_t{1} << node_of(kept, count, parent);
      ++depth;
    }
    tokens[node] = index < 0 ? 0 : pool_tokens[index];
    parents[node] = index < 0 ? -1 : first;
    depths[node] = depth;
    mask[node] = static_cast<int64_t>(index < 0 ? seen : seen | 1U);
    if (node > 0) pool_index[node - 1] = index;
  });
}

}  // namespace lamplighter::dynamic

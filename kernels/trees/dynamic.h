#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/common/isa.h"
#include "kernels/sampling/distribution.h"

// Dynamic draft trees of EAGLE-2 (Li et al. 2024), with fixed shapes. Each pass expands k paths by their k
// most probable tokens; the best candidates of all passes become the tree. Equal values: the smaller index
// first.
namespace lamplighter {

constexpr int64_t kMostDynamicNodes = 63;  // with the root a mask of 64 bits
constexpr int64_t kMostDynamicChildren = 64;

// expand_dynamic: candidate path * k + rank is the rank-th most probable token behind a path; its score is
// the path's score + log p in fp32, -inf for p = 0 (also for p < 0, NaN and infinite p). The k best
// candidates are the next frontier, best first. Bits are equal on all devices.
struct ExpandArgs {
  DistributionRows rows;  // [images, width, vocabulary]
  const float* scores;    // [images, width] cumulative log p, <= 0, not NaN
  int64_t* tokens;        // [images, width * k]
  float* pool_scores;     // [images, width * k]
  int64_t* frontier;      // [images, k]
  int64_t images;
  int64_t k;
};

// rerank_dynamic: the `nodes` best of the pool in pool order become nodes 1, 2, ... of the tree below root 0.
// The pool holds the k candidates of the root, then k * k of each pass; frontiers name what a pass expanded
// as candidate of the pass before (pass 0: of the root's). A score of -inf is never selected; nodes left over
// have token 0, parent -1, depth 0, the mask of their own bit and pool_index -1. No score exceeds its
// parent's, so parents are selected before their children.
struct RerankArgs {
  const int64_t* pool_tokens;  // [images, pool], pool = k + passes * k * k
  const float* scores;         // [images, pool], not NaN, not -0
  const int64_t* frontiers;    // [images, passes, k]
  int64_t* tokens;             // [images, nodes + 1], the root's is 0
  int64_t* parents;            // [images, nodes + 1], the root's is -1
  int64_t* depths;             // [images, nodes + 1]
  int64_t* mask;               // [images, nodes + 1, 1], bit j of node n: j is n or above n
  int64_t* pool_index;         // [images, nodes]
  int64_t images;
  int64_t pool;
  int64_t passes;
  int64_t k;
  int64_t nodes;  // 0..63
};

// CPU kernel of expand_dynamic over the rows [begin, end) of images * width, before the frontiers are chosen.
// `scratch`: expand_scratch_bytes() bytes, 64-byte aligned, private to the calling thread.
size_t expand_scratch_bytes(int64_t vocabulary, int64_t candidates);
size_t rerank_scratch_bytes(int64_t pool);
template <Isa isa>
void expand_cpu(const ExpandArgs& args, int64_t begin, int64_t end, void* scratch);

// CUDA kernels over all images, queued on `stream` (a cudaStream_t). `scratch`: images * width *
// expand_scratch_bytes() or images * rerank_scratch_bytes() bytes.
void expand_cuda(const ExpandArgs& args, void* scratch, void* stream);
void rerank_cuda(const RerankArgs& args, void* scratch, void* stream);

}  // namespace lamplighter

#pragma once

#include "kernels/common/cuda/cluster.h"
#include "kernels/common/cuda/executor.h"

// The blocks of a cluster that share a row of logits, and how they tell each other what they have found.
namespace lamplighter::sampling {

// kBlocks blocks of kThreads threads with kEach neighbouring tokens.
template <int kBlocks_, int kThreads_, int kEach_>
struct RowShape {
  static constexpr int kBlocks = kBlocks_, kThreads = kThreads_, kEach = kEach_;
  static constexpr int kTokens = kThreads * kEach;  // of a block
  static constexpr int64_t kMostTokens = int64_t{kBlocks} * kTokens;
  static_assert(kTokens <= 65536, "16 bits say where in its block a token is");
};

// The shared memory of a block. Arrays of kBlocks hold what every block of the cluster has written there.
template <class Shape>
struct ClusterStorage {
  static constexpr int kFew = 256;  // values of one cell that a block can list

  BlockStorage block;                                        // its cells count the logits of this block
  uint32_t through[kExecutorCells / Shape::kBlocks];         // sums of this block's share of the cells
  uint32_t keys[Shape::kBlocks], segments[Shape::kBlocks];   // largest logits, sums of the shares
  double totals[Shape::kBlocks], masses[2][Shape::kBlocks];  // of what stays
  uint64_t best[Shape::kBlocks];                             // the most probable token of each
  int cell;                                                  // that holds the k-th logit
  uint32_t above, same;                                      // larger logits than in it; in it, of this block
  float in_cell[kFew], in_cell_of_all[Shape::kBlocks * kFew];
  float values[Shape::kTokens];  // of the listed tokens: logits, then probabilities
  uint16_t ids[Shape::kTokens];  // less the first one of the block
  int tokens[2];                 // in block 0: what was sampled
};

// One block of the cluster. All threads of all blocks call the same members in the same order.
template <class Shape>
class ClusterMember {
 public:
  using Storage = ClusterStorage<Shape>;
  using Executor = BlockExecutor<Shape::kThreads>;

  __device__ int rank() const { return rank_; }
  __device__ int first() const { return rank_ * Shape::kTokens; }  // the first id of this block
  __device__ Executor& executor() { return executor_; }

  __device__ void sync() {
    if constexpr (kBlocks == 1) {
      __syncthreads();
    } else {
      sync_cluster();
    }
  }

 protected:
  static constexpr int kBlocks = Shape::kBlocks;

  __device__ explicit ClusterMember(Storage& storage)
      : s_(storage), executor_(&storage.block), rank_(kBlocks == 1 ? 0 : cluster_rank()) {}

  __device__ static int thread() { return static_cast<int>(threadIdx.x); }

  // What lies in the memory of a block where `own` lies in this one's.
  template <class T>
  __device__ static T* of_block(T* own, int block) {
    if constexpr (kBlocks == 1) {
      return own;
    } else {
      return in_block(own, block);
    }
  }

  // Each block's value, to all of them.
  template <class T>
  __device__ void exchange(T (&slots)[kBlocks], T value) {
    if (thread() < kBlocks) *of_block(&slots[rank_], thread()) = value;
    sync();
  }

  template <class T, class Op>
  __device__ static T over_blocks(const T (&slots)[kBlocks], Op op) {
    T all = slots[0];
#pragma unroll
    for (int block = 1; block < kBlocks; ++block) all = op(all, slots[block]);
    return all;
  }

  Storage& s_;
  Executor executor_;
  const int rank_;
};

}  // namespace lamplighter::sampling

#pragma once

#include "kernels/sampling/cluster_member.h"
#include "kernels/sampling/select.h"

// A row of logits in a cluster of blocks. Every logit is read once, into a register. What the filters leave
// is listed in shared memory, each block with its own share, ids rising; the rest works on these short lists.
// The numbers are the same as in sampling_body.h: only the sum behind `norm` rounds in another order.
namespace lamplighter::sampling {

struct FoundKth {
  bool found;
  float value;
};

template <class Shape>
class ClusterRow : public ClusterMember<Shape> {
 protected:
  using Member = ClusterMember<Shape>;
  using Member::exchange, Member::executor_, Member::kBlocks, Member::of_block, Member::over_blocks,
      Member::rank_, Member::s_, Member::thread;

 public:
  using Member::sync;
  using typename Member::Storage;

  // Before the row is loaded: what needs no other block.
  __device__ ClusterRow(Storage& storage, int64_t vocabulary)
      : Member(storage), first_(rank_ * Shape::kTokens), vocabulary_(static_cast<int>(vocabulary)) {
    if constexpr (kBlocks > 1) announce_to_cluster();
    uint32_t* cells = executor_.template cells<uint32_t>();
    for (int i = thread(); i < kExecutorCells; i += Shape::kThreads) cells[i] = 0;
    if (thread() == 0) {
      s_.same = 0;
      s_.tokens[0] = s_.tokens[1] = -1;
    }
  }

  // logits: GuidedLogits of the row.
  template <class Logits>
  __device__ void load(const Logits& logits) {
    using T = typename Logits::Element;
    constexpr int kPack = 16 / static_cast<int>(sizeof(T));
#pragma unroll
    for (int part = 0; part < Shape::kEach; part += kPack) {
      const int begin = first_ + thread() * Shape::kEach + part;
      T own[kPack] = {}, other[kPack] = {};
      load_few(own, logits.conditional + begin, vocabulary_ - begin);
      if (Logits::kPairs) load_few(other, logits.conditional + begin + logits.stride, vocabulary_ - begin);
#pragma unroll
      for (int j = 0; j < kPack; ++j)
        z_[part + j] = begin + j < vocabulary_ ? logits.of(own[j], other[j]) : -kInfinity;
    }
  }

  // The greatest logit.
  __device__ float find_largest() {
    uint32_t key = 0;
#pragma unroll
    for (int e = 0; e < Shape::kEach; ++e) key = Largest()(key, sort_key(z_[e]));
    key = executor_.reduce(
        Shape::kThreads, 0U, [=](int) { return key; }, Largest());
    if constexpr (kBlocks > 1) wait_for_cluster();  // the other half of the constructor's barrier
    exchange(s_.keys, key);
    largest_ = sorted_value(over_blocks(s_.keys, Largest()));
    return largest_;
  }

  // The k-th largest logit, -inf where fewer are finite; not found where too many are nearly alike.
  __device__ FoundKth kth(int64_t k) {
    count_cells();
    sync();
    sum_cells();
    if (over_blocks(s_.segments, Sum()) < k) return {true, -kInfinity};
    find_cell(static_cast<uint32_t>(k));
    list_cell();
    sync();
    uint32_t count = 0;
    bool few = true;
    for (int block = 0; block < kBlocks; ++block) {
      const uint32_t own = *of_block(&s_.same, block);
      few = few && own <= Storage::kFew;
      if (few) gather(block, count, own);
      count += own;
    }
    __syncthreads();
    if (!few) return {false, 0.0F};
    const float* values = s_.in_cell_of_all;
    const Selected<uint32_t> selected = select_by_rank(
        executor_, static_cast<int>(count), [=](int i) { return values[i]; },
        static_cast<uint32_t>(k) - 1 - s_.above);
    return {true, selected.value};
  }

  // Lists the tokens from `floor` on and their probabilities; returns RowStatistics::norm.
  __device__ float keep(float floor, float scale) {
    uint32_t own = 0;
#pragma unroll
    for (int e = 0; e < Shape::kEach; ++e) own += stays(z_[e], floor) ? 1U : 0U;
    const Prefixed<uint32_t> place = executor_.prefix(own);
    kept_ = static_cast<int>(place.all);
    uint32_t at = place.before;
#pragma unroll
    for (int e = 0; e < Shape::kEach; ++e) {
      if (!stays(z_[e], floor)) continue;
      s_.values[at] = z_[e];
      s_.ids[at++] = static_cast<uint16_t>(thread() * Shape::kEach + e);
    }
    __syncthreads();
    float* values = s_.values;
    const float largest = largest_;
    exchange(s_.totals, executor_.reduce(
                            kept_, 0.0,
                            [=](int i) {
                              values[i] = exp_negative((values[i] - largest) * scale);
                              return static_cast<double>(values[i]);
                            },
                            Sum()));
    const auto norm = static_cast<float>(1.0 / over_blocks(s_.totals, Sum()));
    executor_.for_each(kept_, [=](int i) { values[i] *= norm; });
    return norm;
  }

  // The mass of what is listed, all blocks together.
  __device__ double weigh() {
    return change([](int, float value) { return value; });
  }

  // value = change(id, value) for every listed token; returns their mass.
  template <class Change>
  __device__ double change(Change change) {
    float* values = s_.values;
    const uint16_t* ids = s_.ids;
    const int first = first_;
    own_ = executor_.reduce(
        kept_, 0.0,
        [=](int i) {
          values[i] = change(first + ids[i], values[i]);
          return mass(static_cast<double>(values[i]));
        },
        Sum());
    double(&masses)[kBlocks] = s_.masses[turn_];
    turn_ ^= 1;  // the other blocks may still read what was exchanged before
    exchange(masses, own_);
    before_ = 0;
    for (int block = 0; block < rank_; ++block) before_ += masses[block];
    return total_ = over_blocks(masses, Sum());
  }

  // As sample_token() of sampling_body.h. The token is in block 0 after the next sync().
  __device__ void sample(float uniform) {
    weigh();
    sample_weighed(uniform, 0);
  }

  // Of what was weighed or changed last, to token(which).
  __device__ void sample_weighed(float uniform, int which) {
    const double limit = static_cast<double>(uniform) * total_;
    if (!(before_ <= limit && before_ + own_ > limit)) return;
    const float* values = s_.values;
    // Exact: `before_` is a multiple of 2^-50 up to `limit`.
    const int place =
        executor_.scan(kept_, limit - before_, [=](int i) { return mass(static_cast<double>(values[i])); })
            .index;
    if (thread() == 0) *of_block(&s_.tokens[which], 0) = first_ + s_.ids[place];
  }

  // The most probable token, the smallest id among equals.
  __device__ void take_best() {
    const float* values = s_.values;
    const uint16_t* ids = s_.ids;
    const int first = first_;
    const uint64_t own = executor_.reduce(
        kept_, uint64_t{0},
        [=](int i) {
          return uint64_t{float_bits(values[i])} << 32 |
                 (0xFFFFFFFFU - static_cast<uint32_t>(first + ids[i]));
        },
        Largest());
    exchange(s_.best, own);
    const uint64_t best = over_blocks(s_.best, Largest());
    if (rank_ == 0 && thread() == 0 && best >> 32 != 0)
      s_.tokens[0] = static_cast<int>(0xFFFFFFFFU - static_cast<uint32_t>(best));
  }

  // In block 0; -1 for none.
  __device__ int token(int which = 0) const {
    return s_.tokens[which];
  }

 protected:
  int kept_ = 0;  // tokens that this block lists

 private:
  static constexpr int kShare = kExecutorCells / kBlocks;  // cells that a block sums
  static constexpr int kCells = kShare > Shape::kThreads ? kShare / Shape::kThreads : 1;  // of a thread of it

  __device__ static bool stays(float z, float floor) {
    return (z >= floor) & (z > -kInfinity);
  }

  // `count`: of the elements from here to the end of the row.
  template <class T, int kPack>
  __device__ static void load_few(T (&to)[kPack], const T* from, int count) {
    if (count >= kPack && reinterpret_cast<uintptr_t>(from) % 16 == 0) {
      uint32_t words[4];
      load_once(words, from);
      __builtin_memcpy(to, words, sizeof(words));
      return;
    }
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      if (j < count) to[j] = from[j];
    }
  }

  // Logits of this block by their distance to the largest one.
  __device__ void count_cells() {
    uint32_t* cells = executor_.template cells<uint32_t>();
#pragma unroll
    for (int e = 0; e < Shape::kEach; ++e) {
      if (z_[e] > -kInfinity) atomicAdd(&cells[distance_cell(largest_, z_[e])], 1U);
    }
  }

  // Of this block's share of the cells: the logits of all blocks up to each cell.
  __device__ void sum_cells() {
    uint32_t* cells = executor_.template cells<uint32_t>() + rank_ * kShare;
    uint32_t through[kCells], own = 0;
#pragma unroll
    for (int j = 0; j < kCells; ++j) {
      const int i = thread() * kCells + j;
      for (int block = 0; block < kBlocks && i < kShare; ++block) own += *of_block(&cells[i], block);
      through[j] = own;
    }
    const Prefixed<uint32_t> sums = executor_.prefix(own);
#pragma unroll
    for (int j = 0; j < kCells; ++j) {
      if (thread() * kCells + j < kShare) s_.through[thread() * kCells + j] = sums.before + through[j];
    }
    exchange(s_.segments, sums.all);
  }

  // The cell that holds the k-th logit, and how many logits are larger than those in it.
  __device__ void find_cell(uint32_t k) {
    int owner = 0;
    uint32_t before = 0;
    while (owner < kBlocks - 1 && before + s_.segments[owner] < k) before += s_.segments[owner++];
    const uint32_t* through = of_block(s_.through, owner);
    for (int i = thread(); i < kShare; i += Shape::kThreads) {
      const uint32_t below = before + (i > 0 ? through[i - 1] : 0U);
      if (below >= k || before + through[i] < k) continue;
      s_.cell = owner * kShare + i;
      s_.above = below;
    }
    __syncthreads();
  }

  __device__ void list_cell() {
    const int cell = s_.cell;
#pragma unroll
    for (int e = 0; e < Shape::kEach; ++e) {
      if (!(z_[e] > -kInfinity) || distance_cell(largest_, z_[e]) != cell) continue;
      const uint32_t place = atomicAdd(&s_.same, 1U);
      if (place < Storage::kFew) s_.in_cell[place] = z_[e];
    }
  }

  // What a block has listed, to `at` in this one.
  __device__ void gather(int block, uint32_t at, uint32_t count) {
    const float* from = of_block(s_.in_cell, block);
    for (auto i = static_cast<uint32_t>(thread()); i < count; i += Shape::kThreads)
      s_.in_cell_of_all[at + i] = from[i];
  }

  const int first_, vocabulary_;
  float z_[Shape::kEach];
  float largest_ = 0;
  int turn_ = 0;
  double own_ = 0, before_ = 0, total_ = 0;  // masses of this block's list, of those before it, of all
};

}  // namespace lamplighter::sampling

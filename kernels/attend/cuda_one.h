#pragma once

#include "kernels/attend/cuda_span.h"

// Attention of one query of a key/value head, an autoregressive step's: a block's keys and values are all on
// their way at once, in registers. Where one span holds the whole cache, the block writes the output itself;
// else attend_join_kernel adds the spans up.
//
// Eight or sixteen neighbouring lanes share a key, eight features each; the group takes every kGroups-th
// key of the span. The new row is made by the group that takes it, and goes to the cache from there.
//
// Equal bits: which lanes add what depends on cache indices and max_length alone, so a row's bits depend on
// its query and on the keys and values that it sees at their cache indices.
namespace lamplighter {
namespace {

template <class T, int kHead>
class OneQuery {
  static constexpr int kLanes = kHead / kFeatures;  // of a group
  static constexpr int kThreads = kOneThreads<kHead>;
  static constexpr int kGroups = kThreads / kLanes;
  static constexpr int kWarps = kThreads / 32;

 public:
  // What the warps leave for each other.
  struct Storage {
    float sums[kWarps][kHead];
    SpanTotals totals[kWarps];
  };

  __device__ OneQuery(const AttendArgs& args, const AttendPass& pass, const Span<T>& span)
      : args_(args), pass_(pass), span_(span) {}

  __device__ void run(Storage& storage) {
    load_old();
    const Features<T> query = turned(blockIdx.y);
    make_new();
    add(query, storage);
  }

  // Joins the warps, after a barrier; with one span the output, else the span's results.
  __device__ void store(const Storage& storage, const SpanResults& results) const {
    const int feature = static_cast<int>(threadIdx.x);
    if (feature >= kHead) return;
    float maximum = minus_infinity();
    for (int w = 0; w < kWarps; ++w) maximum = fmaxf(maximum, storage.totals[w].maximum);
    const float base = maximum > minus_infinity() ? maximum : 0.0F;
    float total = 0.0F, sum = 0.0F;
    for (int w = 0; w < kWarps; ++w) {
      const float weight = exp2_approximate(__fsub_rn(storage.totals[w].maximum, base));
      total = __fmaf_rn(storage.totals[w].total, weight, total);
      sum = __fmaf_rn(storage.sums[w][feature], weight, sum);
    }
    const int64_t item = int64_t{blockIdx.z} * args_.heads + blockIdx.y;
    if (pass_.splits == 1) {
      static_cast<T*>(args_.out)[item * kHead + feature] = narrow<T>(__fdiv_rn(sum, total));
      return;
    }
    results.sums[(item * pass_.splits + blockIdx.x) * kHead + feature] = sum;
    if (feature == 0) results.totals[item * pass_.splits + blockIdx.x] = {maximum, total};
  }

 private:
  __device__ static int feature() { return static_cast<int>(threadIdx.x) % kLanes * kFeatures; }
  // Cache index of the lane's key j.
  __device__ int index(int j) const {
    return span_.begin + j * kGroups + static_cast<int>(threadIdx.x) / kLanes;
  }
  // The lane's features of head number `block` of q|k|v in the new row.
  __device__ const T* raw(int64_t block) const {
    const int64_t blocks = args_.heads + 2 * args_.kv_heads;
    return static_cast<const T*>(args_.qkv) + (int64_t{blockIdx.z} * blocks + block) * kHead + feature();
  }

  __device__ Features<T> turned(int64_t block) const {
    const auto features = Features<T>::load(raw(block));
    return lamplighter::turned(features,
                               load_pack<float, kFeatures>(rotary_row(args_, blockIdx.z, 0) + feature()));
  }

  // Keys and values that were in the cache before; zeros for others.
  __device__ void load_old() {
#pragma unroll
    for (int j = 0; j < kOneKeys; ++j) {
      key_[j] = value_[j] = {};
      if (index(j) >= span_.end || index(j) >= span_.start) continue;
      key_[j] = Features<T>::load(span_.keys + int64_t{index(j)} * kHead + feature());
    }
#pragma unroll
    for (int j = 0; j < kOneKeys; ++j) {
      if (index(j) >= span_.end || index(j) >= span_.start) continue;
      value_[j] = Features<T>::load(span_.values + int64_t{index(j)} * kHead + feature());
    }
  }

  // Key and value of the new row, which go to the cache, too.
  __device__ void make_new() {
#pragma unroll
    for (int j = 0; j < kOneKeys; ++j) {
      if (index(j) != span_.start || index(j) >= span_.end) continue;
      const int64_t block = args_.heads + blockIdx.y;
      key_[j] = turned(block);
      value_[j] = Features<T>::load(raw(block + args_.kv_heads));
      key_[j].store(span_.keys + int64_t{span_.start} * kHead + feature());
      value_[j].store(span_.values + int64_t{span_.start} * kHead + feature());
    }
  }

  __device__ bool sees(int at) const {
    const int column = at - span_.length;
    if (at >= span_.end) return false;
    if (column < 0) return true;
    if (args_.tree_mask == nullptr) return column == 0;
    return column / 64 < args_.mask_words &&
           (static_cast<unsigned long long>(mask_row(args_, blockIdx.z, 0)[column / 64]) >> column % 64 &
            1) != 0;
  }

  __device__ void add(const Features<T>& query, Storage& storage) const {
    const float scale = __fmul_rn(args_.scale, 1.44269504F);
    float scores[kOneKeys];
    unsigned seen = 0;
    float maximum = minus_infinity();
#pragma unroll
    for (int j = 0; j < kOneKeys; ++j) {
      float score = 0.0F;
#pragma unroll
      for (int i = 0; i < kFeatures; ++i) {
        score = __fmaf_rn(widen(query[i]), widen(key_[j][i]), score);
      }
#pragma unroll
      for (int step = kLanes / 2; step > 0; step /= 2) score = __fadd_rn(score, shuffled(score, step));
      scores[j] = __fmul_rn(score, scale);
      if (!sees(index(j))) continue;
      seen |= 1U << j;
      maximum = fmaxf(maximum, scores[j]);
    }
    SpanTotals totals{maximum, 0.0F};
    float sum[kFeatures] = {};
#pragma unroll
    for (int j = 0; j < kOneKeys; ++j) {
      if ((seen >> j & 1U) == 0) continue;
      const float weight = exp2_approximate(__fsub_rn(scores[j], maximum));
      totals.total = __fadd_rn(totals.total, weight);
#pragma unroll
      for (int i = 0; i < kFeatures; ++i) sum[i] = __fmaf_rn(weight, widen(value_[j][i]), sum[i]);
    }
    join_groups(totals, sum);
    const int warp = static_cast<int>(threadIdx.x) / 32;
    if (static_cast<int>(threadIdx.x) % 32 >= kLanes) return;
    if (feature() == 0) storage.totals[warp] = totals;
#pragma unroll
    for (int i = 0; i < kFeatures; ++i) storage.sums[warp][feature() + i] = sum[i];
  }

  // The groups of a warp; a sum of two has the same bits either way round.
  __device__ static void join_groups(SpanTotals& totals, float (&sum)[kFeatures]) {
#pragma unroll
    for (int step = kLanes; step < 32; step *= 2) {
      const float other = shuffled(totals.maximum, step);
      const float maximum = fmaxf(totals.maximum, other);
      const float base = maximum > minus_infinity() ? maximum : 0.0F;
      const float own_weight = exp2_approximate(__fsub_rn(totals.maximum, base));
      const float other_weight = exp2_approximate(__fsub_rn(other, base));
      const auto joined = [&](float own) {
        const float its = shuffled(own, step);
        return __fadd_rn(__fmul_rn(own, own_weight), __fmul_rn(its, other_weight));
      };
      totals = {maximum, joined(totals.total)};
#pragma unroll
      for (int i = 0; i < kFeatures; ++i) sum[i] = joined(sum[i]);
    }
  }

  __device__ static float shuffled(float value, int step) {
    return __shfl_xor_sync(~0U, value, step);
  }

  const AttendArgs& args_;
  const AttendPass& pass_;
  const Span<T>& span_;
  Features<T> key_[kOneKeys], value_[kOneKeys];
};

// Grid: spans, key/value heads, sequences.
template <class T, int kHead>
__global__ void __launch_bounds__(kOneThreads<kHead>, 512 / kOneThreads<kHead>)
    attend_one_kernel(AttendArgs args, AttendPass pass, SpanResults results) {
  __shared__ typename OneQuery<T, kHead>::Storage storage;
  let_next_kernel_start();
  wait_for_earlier_kernels();
  const Span<T> span = find_span<T>(args, pass);
  if (span.begin >= span.end) return;  // no row sees these keys
  OneQuery<T, kHead> query(args, pass, span);
  query.run(storage);
  __syncthreads();
  query.store(storage, results);
}

}  // namespace
}  // namespace lamplighter

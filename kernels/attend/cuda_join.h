#pragma once

#include "kernels/attend/cuda_span.h"

// The last step of attention over several spans.
namespace lamplighter {
namespace {

constexpr int kJoinThreads = 256;

// Joins the spans in order; one thread per 4 output features.
template <class T, int kHead>
__global__ void __launch_bounds__(kJoinThreads)
    attend_join_kernel(AttendArgs args, AttendPass pass, SpanResults results) {
  constexpr int kEarly = 4;  // spans whose results are loaded before their number is known
  let_next_kernel_start();
  wait_for_earlier_kernels();
  const unsigned i = blockIdx.x * kJoinThreads + threadIdx.x;
  const unsigned feature = i % (kHead / 4) * 4;
  const unsigned query = i / (kHead / 4);  // (sequence, row of the pass, head)
  const unsigned heads = static_cast<unsigned>(args.heads), count = static_cast<unsigned>(pass.count);
  const unsigned row = query / heads % count;
  const unsigned sequence = query / heads / count;
  if (sequence >= args.sequences) return;
  const SpanTotals* totals = results.totals + int64_t{query} * pass.splits;
  const float* sums = results.sums + int64_t{query} * pass.splits * kHead + feature;
  SpanTotals early_totals[kEarly];
  Pack<float, 4> early_sums[kEarly];
#pragma unroll
  for (int split = 0; split < kEarly; ++split) {
    if (split >= pass.splits) break;
    early_totals[split] = totals[split];
    early_sums[split] = load_pack<float, 4>(sums + split * kHead);
  }
  const int end = static_cast<int>(visible_end(args, pass, sequence, prefix_length(args, sequence)));
  const int splits = (end + pass.keys - 1) / pass.keys;
  float maximum = minus_infinity();
#pragma unroll
  for (int split = 0; split < kEarly; ++split) {
    if (split < splits) maximum = fmaxf(maximum, early_totals[split].maximum);
  }
  for (int split = kEarly; split < splits; ++split) maximum = fmaxf(maximum, totals[split].maximum);
  float total = 0.0F;
  Pack<float, 4> sum = {};
  const auto add = [&](const SpanTotals& part, const Pack<float, 4>& values) {
    const float weight = exp2_approximate(__fsub_rn(part.maximum, maximum));
    total = __fmaf_rn(part.total, weight, total);
    for (int j = 0; j < 4; ++j) sum.element[j] = __fmaf_rn(values.element[j], weight, sum.element[j]);
  };
#pragma unroll
  for (int split = 0; split < kEarly; ++split) {
    if (split < splits) add(early_totals[split], early_sums[split]);
  }
  for (int split = kEarly; split < splits; ++split) {
    add(totals[split], load_pack<float, 4>(sums + split * kHead));
  }
  Pack<T, 4> out;
  for (int j = 0; j < 4; ++j) out.element[j] = narrow<T>(__fdiv_rn(sum.element[j], total));
  T* to = static_cast<T*>(args.out) +
          ((sequence * args.rows + pass.first + row) * args.heads + query % heads) * kHead;
  store_pack(to + feature, out);
}

}  // namespace
}  // namespace lamplighter

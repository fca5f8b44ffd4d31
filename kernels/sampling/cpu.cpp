#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <optional>

#include "base/philox.h"
#include "kernels/common/cpu_rows.h"
#include "kernels/common/executor.h"
#include "kernels/sampling/args.h"
#include "kernels/sampling/sampling.h"

namespace lamplighter {

size_t sampling_scratch_bytes(int64_t vocabulary) {
  const size_t bytes = kExecutorCells * sizeof(double) + 2 * static_cast<size_t>(vocabulary) * sizeof(float);
  return (bytes + 63) / 64 * 64;
}

namespace {

at::Tensor uniforms_cpu(const at::Tensor& seeds, const at::Tensor& steps, int64_t purpose, int64_t count) {
  UniformsArgs args = uniforms_args(seeds, steps, purpose, count);
  at::Tensor out = at::empty({args.images, count}, seeds.options().dtype(at::kFloat));
  args.out = out.mutable_data_ptr<float>();
  for (int64_t image = 0; image < args.images; ++image) {
    for (int64_t node = 0; node < count; ++node) {
      args.out[image * count + node] =
          philox_uniform(static_cast<uint64_t>(args.seeds[image]), static_cast<uint32_t>(args.steps[image]),
                         static_cast<uint32_t>(purpose), static_cast<uint32_t>(node));
    }
  }
  return out;
}

// The kernel for this CPU over all rows.
template <class Args, class Kernel>
void for_rows(const Args& args, const DistributionRows& rows, Kernel kernel) {
  const ThreadScratch scratch(sampling_scratch_bytes(rows.vocabulary));
  for_row_parts(args.images * rows.rows, rows.vocabulary,
                [&](int64_t begin, int64_t end) { kernel(args, begin, end, scratch.get()); });
}

at::Tensor guide_and_filter_cpu(const at::Tensor& logits, const at::Tensor& guidance,
                                const at::Tensor& temperature, const at::Tensor& top_k,
                                const at::Tensor& top_p, c10::string_view order) {
  GuideAndFilterArgs args = guide_and_filter_args(logits, guidance, temperature, top_k, top_p, order);
  at::Tensor out = statistics_of(args, logits);
  for_rows(args, args.logits,
           for_isa(guide_and_filter_portable, guide_and_filter_avx2, guide_and_filter_avx512));
  return out;
}

at::Tensor probabilities_cpu(const at::Tensor& logits, const at::Tensor& statistics) {
  ProbabilitiesArgs args = probabilities_args(logits, statistics);
  at::Tensor out = at::empty({args.images, args.rows.rows, args.rows.vocabulary}, statistics.options());
  args.out = out.mutable_data_ptr<float>();
  for_rows(args, args.rows, for_isa(probabilities_portable, probabilities_avx2, probabilities_avx512));
  return out;
}

at::Tensor draw_cpu(const at::Tensor& values, const at::Tensor& uniforms, const at::Tensor& temperature,
                    const std::optional<at::Tensor>& statistics) {
  DrawArgs args = draw_args(values, uniforms, temperature, or_undefined(statistics));
  at::Tensor out = at::empty({args.images, args.rows.rows}, uniforms.options().dtype(at::kLong));
  args.out = out.mutable_data_ptr<int64_t>();
  for_rows(args, args.rows, for_isa(draw_portable, draw_avx2, draw_avx512));
  return out;
}

}  // namespace

TORCH_LIBRARY_IMPL(lamplighter, CPU, m) {
  m.impl("uniforms", uniforms_cpu);
  m.impl("guide_and_filter", guide_and_filter_cpu);
  m.impl("probabilities", probabilities_cpu);
  m.impl("draw", draw_cpu);
}

}  // namespace lamplighter

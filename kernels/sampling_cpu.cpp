#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <algorithm>

#include "base/philox.h"
#include "kernels/executor.h"
#include "kernels/isa.h"
#include "kernels/sampling.h"
#include "kernels/sampling_args.h"

namespace lamplighter {

size_t guide_and_filter_scratch_bytes(int64_t vocabulary) {
  const size_t bytes = kExecutorCells * sizeof(double) + static_cast<size_t>(vocabulary) * sizeof(float);
  return (bytes + 63) / 64 * 64;
}

namespace {

constexpr int64_t kElementsPerTask = 16384;  // below that a thread costs more than it saves

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

// Calls rows(begin, end) for parts of [0, count) on several threads.
template <class Rows>
void for_row_parts(int64_t count, int64_t vocabulary, Rows rows) {
  at::parallel_for(0, count, std::max<int64_t>(1, kElementsPerTask / vocabulary), rows);
}

at::Tensor guide_and_filter_cpu(const at::Tensor& logits, const at::Tensor& guidance,
                                const at::Tensor& temperature, const at::Tensor& top_k,
                                const at::Tensor& top_p, c10::string_view order) {
  GuideAndFilterArgs args = guide_and_filter_args(logits, guidance, temperature, top_k, top_p, order);
  at::Tensor out = at::empty({args.images, args.rows, args.vocabulary}, logits.options().dtype(at::kFloat));
  args.out = out.mutable_data_ptr<float>();
  const size_t bytes = guide_and_filter_scratch_bytes(args.vocabulary);
  at::Tensor scratch =
      at::empty({at::get_num_threads(), static_cast<int64_t>(bytes)}, logits.options().dtype(at::kByte));
  auto* scratch_base = static_cast<char*>(scratch.mutable_data_ptr());
  const Isa isa = active_isa();
  const auto kernel = isa == Isa::kAvx512 ? guide_and_filter_avx512
                      : isa == Isa::kAvx2 ? guide_and_filter_avx2
                                          : guide_and_filter_portable;
  for_row_parts(args.images * args.rows, args.vocabulary, [&](int64_t begin, int64_t end) {
    kernel(args, begin, end, scratch_base + static_cast<size_t>(at::get_thread_num()) * bytes);
  });
  return out;
}

at::Tensor draw_cpu(const at::Tensor& probabilities, const at::Tensor& uniforms,
                    const at::Tensor& temperature) {
  DrawArgs args = draw_args(probabilities, uniforms, temperature);
  at::Tensor out = at::empty({args.images, args.rows}, probabilities.options().dtype(at::kLong));
  args.out = out.mutable_data_ptr<int64_t>();
  const Isa isa = active_isa();
  const auto kernel = isa == Isa::kAvx512 ? draw_avx512 : isa == Isa::kAvx2 ? draw_avx2 : draw_portable;
  for_row_parts(args.images * args.rows, args.vocabulary,
                [&](int64_t begin, int64_t end) { kernel(args, begin, end); });
  return out;
}

}  // namespace

TORCH_LIBRARY_IMPL(lamplighter, CPU, m) {
  m.impl("uniforms", uniforms_cpu);
  m.impl("guide_and_filter", guide_and_filter_cpu);
  m.impl("draw", draw_cpu);
}

}  // namespace lamplighter

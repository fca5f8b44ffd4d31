#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <optional>

#include "kernels/common/cuda_stream.h"
#include "kernels/sampling/args.h"

namespace lamplighter {
namespace {

at::Tensor uniforms(const at::Tensor& seeds, const at::Tensor& steps, int64_t purpose, int64_t count) {
  UniformsArgs args = uniforms_args(seeds, steps, purpose, count);
  const CudaLauncher launcher(seeds);
  at::Tensor out = at::empty({args.images, count}, seeds.options().dtype(at::kFloat));
  args.out = out.mutable_data_ptr<float>();
  launcher.launch([&](void* stream) { uniforms_cuda(args, stream); });
  return out;
}

at::Tensor guide_and_filter(const at::Tensor& logits, const at::Tensor& guidance,
                            const at::Tensor& temperature, const at::Tensor& top_k, const at::Tensor& top_p,
                            c10::string_view order) {
  GuideAndFilterArgs args = guide_and_filter_args(logits, guidance, temperature, top_k, top_p, order);
  const CudaLauncher launcher(logits);
  at::Tensor out = statistics_of(args, logits);
  const CudaScratch scratch(logits, args.images * args.logits.rows, guide_and_filter_cuda_bytes(args.logits));
  launcher.launch([&](void* stream) { guide_and_filter_cuda(args, scratch.get<float>(), stream); });
  return out;
}

at::Tensor probabilities(const at::Tensor& logits, const at::Tensor& statistics) {
  ProbabilitiesArgs args = probabilities_args(logits, statistics);
  const CudaLauncher launcher(logits);
  at::Tensor out = at::empty({args.images, args.rows.rows, args.rows.vocabulary}, statistics.options());
  args.out = out.mutable_data_ptr<float>();
  launcher.launch([&](void* stream) { probabilities_cuda(args, stream); });
  return out;
}

at::Tensor draw(const at::Tensor& values, const at::Tensor& uniforms, const at::Tensor& temperature,
                const std::optional<at::Tensor>& statistics) {
  DrawArgs args = draw_args(values, uniforms, temperature, or_undefined(statistics));
  const CudaLauncher launcher(values);
  at::Tensor out = at::empty({args.images, args.rows.rows}, uniforms.options().dtype(at::kLong));
  const CudaScratch scratch(values, args.images * args.rows.rows, draw_cuda_bytes(args.rows));
  args.out = out.mutable_data_ptr<int64_t>();
  launcher.launch([&](void* stream) { draw_cuda(args, scratch.get<float>(), stream); });
  return out;
}

}  // namespace

TORCH_LIBRARY_IMPL(lamplighter, CUDA, m) {
  m.impl("uniforms", &uniforms);
  m.impl("guide_and_filter", &guide_and_filter);
  m.impl("probabilities", &probabilities);
  m.impl("draw", &draw);
}

}  // namespace lamplighter

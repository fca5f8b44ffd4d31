#include <ATen/ops/empty.h>
#include <torch/library.h>

#include "kernels/cuda_stream.h"
#include "kernels/sampling_args.h"

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
  const auto options = logits.options().dtype(at::kFloat);
  at::Tensor out = at::empty({args.images, args.rows, args.vocabulary}, options);
  at::Tensor scratch = at::empty(out.sizes(), options);
  args.out = out.mutable_data_ptr<float>();
  launcher.launch(
      [&](void* stream) { guide_and_filter_cuda(args, scratch.mutable_data_ptr<float>(), stream); });
  return out;
}

at::Tensor draw(const at::Tensor& probabilities, const at::Tensor& uniforms, const at::Tensor& temperature) {
  DrawArgs args = draw_args(probabilities, uniforms, temperature);
  const CudaLauncher launcher(probabilities);
  at::Tensor out = at::empty({args.images, args.rows}, probabilities.options().dtype(at::kLong));
  args.out = out.mutable_data_ptr<int64_t>();
  launcher.launch([&](void* stream) { draw_cuda(args, stream); });
  return out;
}

}  // namespace

TORCH_LIBRARY_IMPL(lamplighter, CUDA, m) {
  m.impl("uniforms", &uniforms);
  m.impl("guide_and_filter", &guide_and_filter);
  m.impl("draw", &draw);
}

}  // namespace lamplighter

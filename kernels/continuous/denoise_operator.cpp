#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <tuple>

#include "kernels/common/meta.h"
#include "kernels/common/on_cuda.h"
#include "kernels/common/operator.h"
#include "kernels/common/rows_on_threads.h"
#include "kernels/continuous/denoise_args.h"
#include "kernels/continuous/denoise_walk.h"

namespace lamplighter {
namespace {

using Denoised = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

// Tokens that pass the chain together: they bound its memory. The CPU computes more of them no faster.
template <On on>
constexpr int64_t kTokensAtOnce = on == On::cuda ? 1024 : 64;

// What a walk calls on a device.
template <On on>
class DenoiseDevice {
 public:
  DenoiseDevice(const at::TensorOptions& options, void* stream) : options_(options), stream_(stream) {}

  void product(const DenoiseProduct& product, const float* x, int64_t rows, float* out) const {
    if constexpr (on == On::cuda) {
      at::Tensor result = numbers(out, rows, product.out);
      at::mm_out(result, numbers(x, rows, product.in), numbers(product.weight, product.out, product.in).t());
    } else {
      linear_on_threads({x, product.weight, out, rows, product.in, product.out, 0, LinearFormat::kFloat32});
    }
  }

  void silu(const DenoiseSiluArgs& args) const {
    if constexpr (on == On::cuda) {
      denoise_silu_cuda(args, stream_);
    } else {
      rows_on_threads(args, args.steps * args.rows, args.width,
                      for_isa([](auto isa) { return &denoise_silu_cpu<isa.value>; }));
    }
  }

  void advance(const DenoiseAdvanceArgs& args) const {
    if constexpr (on == On::cuda) {
      denoise_advance_cuda(args, stream_);
    } else {
      rows_on_threads(args, args.rows, args.width,
                      for_isa([](auto isa) { return &denoise_advance_cpu<isa.value>; }));
    }
  }

  void step(const DenoiseStepArgs& args) const {
    if constexpr (on == On::cuda) {
      denoise_step_cuda(args, stream_);
    } else {
      rows_on_threads(args, args.all.tokens, args.channels,
                      for_isa([](auto isa) { return &denoise_step_cpu<isa.value>; }));
    }
  }

 private:
  at::Tensor numbers(const float* from, int64_t rows, int64_t width) const {
    return at::from_blob(const_cast<float*>(from), {rows, width}, options_);
  }

  at::TensorOptions options_;
  void* stream_;
};

template <On on>
Denoised run(const DenoiseCall& call) {
  const DenoiseHead head = denoise_head(call);
  DenoiseTokens tokens = denoise_tokens(call, head);
  at::Tensor mean = at::empty_like(call.start), deviation = at::empty_like(call.start);
  at::Tensor sums = at::zeros(call.start.sizes(), call.start.options().dtype(at::kDouble));
  tokens.mean = mean.mutable_data_ptr<float>();
  tokens.deviation = deviation.mutable_data_ptr<float>();
  tokens.sums = sums.mutable_data_ptr<double>();
  if (tokens.tokens == 0) return {mean, deviation, sums};
  const int64_t parts = (tokens.tokens + kTokensAtOnce<on> - 1) / kTokensAtOnce<on>;
  const int64_t most = (tokens.tokens + parts - 1) / parts;
  const DenoiseWalk walk(head, most, tokens.unconditional != nullptr);
  const at::Tensor memory = at::empty({walk.floats()}, call.start.options());
  const auto run_parts = [&](void* stream) {
    const DenoiseDevice<on> device(call.start.options(), stream);
    for (int64_t first = 0; first < tokens.tokens; first += most) {
      const int64_t count = std::min(most, tokens.tokens - first);
      walk.run(device, denoise_part(tokens, head, first, count), memory.mutable_data_ptr<float>());
    }
  };
  if constexpr (on == On::cuda) {
    on_cuda(call.start, run_parts);
  } else {
    run_parts(nullptr);
  }
  return {mean, deviation, sums};
}

template <On on>
Denoised denoise(const at::Tensor& z, const at::Tensor& unconditional, const at::Tensor& scale,
                 const at::Tensor& start, const at::Tensor& noise, const at::Tensor& temperature,
                 const at::Tensor& times, const at::Tensor& tables, at::TensorList weights,
                 at::TensorList biases, at::TensorList norms, double eps) {
  if constexpr (on == On::meta) {
    check_rank(kDenoise, "start", start, 2);
    const SymSizes sizes = start.sym_sizes().vec();
    return {like(start, sizes), like(start, sizes), like(start, sizes, at::kDouble)};
  } else {
    return run<on>(
        {z, unconditional, scale, start, noise, temperature, times, tables, weights, biases, norms, eps});
  }
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(lamplighter, m) {
  define(m,
         "denoise(Tensor z, Tensor unconditional, Tensor scale, Tensor start, Tensor noise, Tensor "
         "temperature, Tensor times, Tensor tables, Tensor[] weights, Tensor[] biases, Tensor[] norms, float "
         "eps) -> (Tensor mean, Tensor deviation, Tensor sums)",
         [](auto on) { return &denoise<on.value>; });
}

}  // namespace lamplighter

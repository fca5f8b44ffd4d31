#include "kernels/common/cpu_executor.h"
#include "kernels/common/this_isa.h"
#include "kernels/continuous/denoise_body.h"
#include "kernels/continuous/gaussian_body.h"
#include "kernels/elementwise/elementwise_body.h"

namespace lamplighter {
namespace {

template <typename V>
void denoise_silu_rows(const DenoiseSiluArgs& args, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) {
    const float* x = args.x + row % args.rows * args.width;
    const float* times = args.times == nullptr ? nullptr : args.times + row / args.rows * args.width;
    const float* bias = args.bias;
    float* out = args.out + row * args.width;
    over_vectors<V>(args.width, [=](auto v) {
      const auto sum = V::add(v.load(x), v.load(bias));
      v.store(out, silu<V>(times == nullptr ? sum : V::add(sum, v.load(times))));
    });
  }
}

}  // namespace

template <>
void gaussian_log_ratio_cpu<kThisIsa>(const GaussianLogRatioArgs& args, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) continuous::log_ratio_row(args, row);
}

template <>
void gaussian_residual_cpu<kThisIsa>(const GaussianResidualArgs& args, int64_t begin, int64_t end) {
  CpuExecutor<ThisTag> executor(nullptr);
  for (int64_t row = begin; row < end; ++row) continuous::residual_row(executor, args, row);
}

template <>
void denoise_silu_cpu<kThisIsa>(const DenoiseSiluArgs& args, int64_t begin, int64_t end) {
  denoise_silu_rows<ThisSimd>(args, begin, end);
}

template <>
void denoise_advance_cpu<kThisIsa>(const DenoiseAdvanceArgs& args, int64_t begin, int64_t end) {
  CpuExecutor<ThisTag> executor(nullptr);
  for (int64_t row = begin; row < end; ++row) continuous::advance_row(executor, args, row);
}

template <>
void denoise_step_cpu<kThisIsa>(const DenoiseStepArgs& args, int64_t begin, int64_t end) {
  for (int64_t token = begin; token < end; ++token) {
    for (int64_t c = 0; c < args.channels; ++c) continuous::step_channel(args, token, c);
  }
}

}  // namespace lamplighter

#include <ATen/ops/empty.h>

#include "kernels/common/checks.h"
#include "kernels/common/meta.h"
#include "kernels/common/on_cuda.h"
#include "kernels/common/operator.h"
#include "kernels/continuous/gaussian.h"
#include "kernels/continuous/gaussian_args.h"

namespace lamplighter {
namespace {

// fp32 [N, C] each, on one device.
GaussianPairs gaussian_pairs(const char* op, const ops::GaussianPair& pair) {
  const auto rows = [&](const char* name, const at::Tensor& tensor) {
    check_tensor(op, name, tensor, at::kFloat, pair.target_mean.device());
    if (&tensor == &pair.target_mean) check_shape(op, name, tensor, {kAny, kAny});
    check_shape(op, name, tensor, {pair.target_mean.size(0), pair.target_mean.size(1)});
    return tensor.const_data_ptr<float>();
  };
  GaussianPairs pairs{};
  pairs.target_mean = rows("target_mean", pair.target_mean);
  pairs.target_deviation = rows("target_deviation", pair.target_deviation);
  pairs.draft_mean = rows("draft_mean", pair.draft_mean);
  pairs.draft_deviation = rows("draft_deviation", pair.draft_deviation);
  pairs.rows = pair.target_mean.size(0);
  pairs.channels = pair.target_mean.size(1);
  return pairs;
}

}  // namespace

GaussianLogRatioArgs gaussian_log_ratio_args(const at::Tensor& x, const ops::GaussianPair& pair) {
  constexpr const char* kOp = "gaussian_log_ratio";
  GaussianLogRatioArgs args{};
  args.pairs = gaussian_pairs(kOp, pair);
  check_tensor(kOp, "x", x, at::kFloat, pair.target_mean.device());
  check_shape(kOp, "x", x, {args.pairs.rows, args.pairs.channels});
  args.x = x.const_data_ptr<float>();
  return args;
}

GaussianResidualArgs gaussian_residual_args(const ops::GaussianPair& pair, const at::Tensor& log_sigma,
                                            const at::Tensor& noise, const at::Tensor& uniforms) {
  constexpr const char* kOp = "gaussian_residual";
  GaussianResidualArgs args{};
  args.pairs = gaussian_pairs(kOp, pair);
  const at::Device device = pair.target_mean.device();
  check_tensor(kOp, "log_sigma", log_sigma, at::kDouble, device);
  check_shape(kOp, "log_sigma", log_sigma, {args.pairs.rows});
  check_tensor(kOp, "noise", noise, at::kFloat, device);
  check_shape(kOp, "noise", noise, {args.pairs.rows, kAny, args.pairs.channels});
  args.proposals = noise.size(1);
  TORCH_CHECK(args.proposals > 0 && args.proposals < (int64_t{1} << 30), kOp, ": noise has shape ",
              noise.sizes(), ", expected 1..2^30 proposals");
  check_tensor(kOp, "uniforms", uniforms, at::kDouble, device);
  check_shape(kOp, "uniforms", uniforms, {args.pairs.rows, args.proposals});
  args.log_sigma = log_sigma.const_data_ptr<double>();
  args.noise = noise.const_data_ptr<float>();
  args.uniforms = uniforms.const_data_ptr<double>();
  return args;
}

namespace ops {

at::Tensor gaussian_log_ratio(const at::Tensor& x, const GaussianPair& pair) {
  return on_device("lamplighter::gaussian_log_ratio", x, [&](auto on) {
    if constexpr (on == On::meta) {
      check_rank("gaussian_log_ratio", "x", x, 2);
      return like(x, {x.sym_size(0)}, at::kDouble);
    } else {
      GaussianLogRatioArgs args = gaussian_log_ratio_args(x, pair);
      at::Tensor out = at::empty({args.pairs.rows}, x.options().dtype(at::kDouble));
      args.out = out.mutable_data_ptr<double>();
      if constexpr (on == On::cuda) {
        on_cuda(x, [&](void* stream) { gaussian_log_ratio_cuda(args, stream); });
      } else {
        for_isa([](auto isa) { return &gaussian_log_ratio_cpu<isa.value>; })(args, 0, args.pairs.rows);
      }
      return out;
    }
  });
}

std::tuple<at::Tensor, at::Tensor> gaussian_residual(const GaussianPair& pair, const at::Tensor& log_sigma,
                                                     const at::Tensor& noise, const at::Tensor& uniforms) {
  using Residual = std::tuple<at::Tensor, at::Tensor>;
  const at::Tensor& mean = pair.target_mean;
  return on_device("lamplighter::gaussian_residual", mean, [&](auto on) -> Residual {
    if constexpr (on == On::meta) {
      check_rank("gaussian_residual", "target_mean", mean, 2);
      return {like(mean, {mean.sym_size(0), mean.sym_size(1)}), like(mean, {mean.sym_size(0)}, at::kLong)};
    } else {
      GaussianResidualArgs args = gaussian_residual_args(pair, log_sigma, noise, uniforms);
      at::Tensor token = at::empty(mean.sizes(), mean.options());
      at::Tensor tries = at::empty({args.pairs.rows}, mean.options().dtype(at::kLong));
      args.token = token.mutable_data_ptr<float>();
      args.tries = tries.mutable_data_ptr<int64_t>();
      if constexpr (on == On::cuda) {
        on_cuda(mean, [&](void* stream) { gaussian_residual_cuda(args, stream); });
      } else {
        for_isa([](auto isa) { return &gaussian_residual_cpu<isa.value>; })(args, 0, args.pairs.rows);
      }
      return {token, tries};
    }
  });
}

}  // namespace ops

TORCH_LIBRARY_FRAGMENT(lamplighter, m) {
  define_adaptor(
      m,
      "gaussian_log_ratio(Tensor x, Tensor target_mean, Tensor target_deviation, "
      "Tensor draft_mean, Tensor draft_deviation) -> Tensor",
      [](const at::Tensor& x, const at::Tensor& target_mean, const at::Tensor& target_deviation,
         const at::Tensor& draft_mean, const at::Tensor& draft_deviation) {
        return ops::gaussian_log_ratio(x, {target_mean, target_deviation, draft_mean, draft_deviation});
      });
  define_adaptor(m,
                 "gaussian_residual(Tensor target_mean, Tensor target_deviation, Tensor draft_mean, "
                 "Tensor draft_deviation, Tensor log_sigma, Tensor noise, Tensor uniforms) "
                 "-> (Tensor token, Tensor tries)",
                 [](const at::Tensor& target_mean, const at::Tensor& target_deviation,
                    const at::Tensor& draft_mean, const at::Tensor& draft_deviation,
                    const at::Tensor& log_sigma, const at::Tensor& noise, const at::Tensor& uniforms) {
                   return ops::gaussian_residual({target_mean, target_deviation, draft_mean, draft_deviation},
                                                 log_sigma, noise, uniforms);
                 });
}

}  // namespace lamplighter

#include <ATen/ops/empty.h>

#include "kernels/common/meta.h"
#include "kernels/common/on_cuda.h"
#include "kernels/common/operator.h"
#include "kernels/continuous/args.h"

namespace lamplighter {
namespace {

template <On on>
at::Tensor gaussian_log_ratio(const at::Tensor& x, const at::Tensor& target_mean,
                              const at::Tensor& target_deviation, const at::Tensor& draft_mean,
                              const at::Tensor& draft_deviation) {
  if constexpr (on == On::meta) {
    check_rank("gaussian_log_ratio", "x", x, 2);
    return like(x, {x.sym_size(0)}, at::kDouble);
  } else {
    GaussianLogRatioArgs args =
        gaussian_log_ratio_args(x, {target_mean, target_deviation, draft_mean, draft_deviation});
    at::Tensor out = at::empty({args.pairs.rows}, x.options().dtype(at::kDouble));
    args.out = out.mutable_data_ptr<double>();
    if constexpr (on == On::cuda) {
      on_cuda(x, [&](void* stream) { gaussian_log_ratio_cuda(args, stream); });
    } else {
      for_isa([](auto isa) { return &gaussian_log_ratio_cpu<isa.value>; })(args, 0, args.pairs.rows);
    }
    return out;
  }
}

template <On on>
std::tuple<at::Tensor, at::Tensor> gaussian_residual(const at::Tensor& target_mean,
                                                     const at::Tensor& target_deviation,
                                                     const at::Tensor& draft_mean,
                                                     const at::Tensor& draft_deviation,
                                                     const at::Tensor& log_sigma, const at::Tensor& noise,
                                                     const at::Tensor& uniforms) {
  if constexpr (on == On::meta) {
    check_rank("gaussian_residual", "target_mean", target_mean, 2);
    return {like(target_mean, {target_mean.sym_size(0), target_mean.sym_size(1)}),
            like(target_mean, {target_mean.sym_size(0)}, at::kLong)};
  } else {
    GaussianResidualArgs args = gaussian_residual_args(
        {target_mean, target_deviation, draft_mean, draft_deviation}, log_sigma, noise, uniforms);
    at::Tensor token = at::empty(target_mean.sizes(), target_mean.options());
    at::Tensor tries = at::empty({args.pairs.rows}, target_mean.options().dtype(at::kLong));
    args.token = token.mutable_data_ptr<float>();
    args.tries = tries.mutable_data_ptr<int64_t>();
    if constexpr (on == On::cuda) {
      on_cuda(target_mean, [&](void* stream) { gaussian_residual_cuda(args, stream); });
    } else {
      for_isa([](auto isa) { return &gaussian_residual_cpu<isa.value>; })(args, 0, args.pairs.rows);
    }
    return {token, tries};
  }
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(lamplighter, m) {
  define(m,
         "gaussian_log_ratio(Tensor x, Tensor target_mean, Tensor target_deviation, Tensor draft_mean, "
         "Tensor draft_deviation) -> Tensor",
         [](auto on) { return &gaussian_log_ratio<on.value>; });
  define(m,
         "gaussian_residual(Tensor target_mean, Tensor target_deviation, Tensor draft_mean, Tensor "
         "draft_deviation, Tensor log_sigma, Tensor noise, Tensor uniforms) -> (Tensor token, Tensor tries)",
         [](auto on) { return &gaussian_residual<on.value>; });
}

}  // namespace lamplighter

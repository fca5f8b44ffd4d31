#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>

#include <algorithm>

#include "kernels/common/meta.h"
#include "kernels/common/on_cuda.h"
#include "kernels/common/operator.h"
#include "kernels/common/parallel.h"
#include "kernels/common/scratch.h"
#include "kernels/linear/full_sums.h"
#include "kernels/linear/linear.h"
#include "kernels/linear/run_few_rows.h"

namespace lamplighter {
namespace {

constexpr int64_t kBlocksPerChunk = 4;            // what threads share out
constexpr int64_t kSerialWork = 2 * 1000 * 1000;  // multiplications worth a thread of their own

// Bits of packed or rounded weights; 16 when they are floats.
int bits_of(const at::Tensor& weight) {
  return weight.scalar_type() == at::kChar ? 8 : weight.scalar_type() == at::kByte ? 4 : 16;
}

void check_integers(const at::Tensor& x, const at::Tensor& weight, int64_t out_features, int bits) {
  check_tensor("linear", "x", x, at::kBFloat16, weight.device());
  check_contiguous("linear", "weight", weight);
  TORCH_CHECK(x.dim() >= 1 && x.size(-1) > 0, "linear: x has shape ", x.sizes(), ", expected [..., in]");
  TORCH_CHECK(out_features > 0, "linear: out_features is ", out_features, ", expected a positive number");
  check_shape("linear", "weight", weight,
              {(out_features + kLinearBlock - 1) / kLinearBlock,
               linear_integer_block_bytes(bits, x.size(-1)) / kLinearBlock, kLinearBlock});
}

void check_floats(const at::Tensor& x, const at::Tensor& weight, int64_t out_features) {
  TORCH_CHECK(weight.dim() == 2 || weight.dim() == 3, "linear: weight has shape ", weight.sizes(),
              ", expected [out, in] or packed [blocks, in, 16]");
  check_activations("linear", "x", x);
  check_tensor("linear", "weight", weight, x.scalar_type(), x.device());
  TORCH_CHECK(x.dim() >= 1 && x.size(-1) == weight.size(1), "linear: x has shape ", x.sizes(),
              ", expected [..., ", weight.size(1), "] for weight of shape ", weight.sizes());
  TORCH_CHECK(out_features > 0, "linear: out_features is ", out_features, ", expected a positive number");
  if (weight.dim() == 2) {
    check_shape("linear", "weight", weight, {out_features, kAny});
    return;
  }
  check_shape("linear", "weight", weight,
              {(out_features + kLinearBlock - 1) / kLinearBlock, kAny, kLinearBlock});
  TORCH_CHECK(weight.size(1) > 0, "linear: weight has shape ", weight.sizes(),
              ", expected no empty dimension");
}

// Arguments over packed weights, with `out` allocated for them.
LinearArgs packed_args(const at::Tensor& x, const at::Tensor& weight, int64_t out_features, at::Tensor* out) {
  const int bits = bits_of(weight);
  LinearArgs args{};
  args.out_features = out_features;
  args.rows = x.numel() / x.size(-1);
  at::DimVector shape(x.sizes());
  shape.back() = out_features;
  *out = at::empty(shape, x.options());
  args.weight = weight.const_data_ptr();
  args.in = x.size(-1);
  args.format = bits == 8                       ? LinearFormat::kInt8
                : bits == 4                     ? LinearFormat::kInt4
                : x.scalar_type() == at::kFloat ? LinearFormat::kFloat32
                                                : LinearFormat::kBFloat16;
  if (args.rows == 0) return args;
  args.out = out->mutable_data_ptr();
  args.x = x.const_data_ptr();
  return args;
}

at::Tensor cpu_product(const at::Tensor& x, const at::Tensor& weight, int64_t out_features) {
  const int bits = bits_of(weight);
  if (bits == 16) {
    check_floats(x, weight, out_features);
  } else {
    check_integers(x, weight, out_features, bits);
  }
  // Plain weights go to the library: right, but slow for few rows, and its order of sums depends on their
  // number.
  if (weight.dim() == 2) return at::linear(x, weight);

  at::Tensor out;
  LinearArgs args = packed_args(x, weight, out_features, &out);
  if (args.rows > 0) linear_on_threads(args);
  return out;
}

at::Tensor plain_product(const at::Tensor& x, const at::Tensor& weight, int64_t out_features) {
  check_activations("linear", "x", x);
  TORCH_CHECK(x.dim() >= 1, "linear: x has shape ", x.sizes(), ", expected [..., in]");
  check_tensor("linear", "weight", weight, x.scalar_type(), x.device());
  check_shape("linear", "weight", weight, {out_features, x.size(-1)});
  const FullPrecisionSums full_precision;
  return at::linear(x, weight);
}

// On CUDA; many rows are bound by arithmetic, which the library does best. A template, because builds without
// CUDA lack its kernels.
template <On on>
at::Tensor rounded_product(const at::Tensor& x, const at::Tensor& weight, int64_t out_features) {
  check_integers(x, weight, out_features, bits_of(weight));
  at::Tensor out;
  LinearArgs args = packed_args(x, weight, out_features, &out);
  if (args.rows <= kRoundedCudaRows) {
    if (args.rows > 0) on_cuda(x, [&](void* stream) { rounded_linear_cuda(args, stream); });
    return out;
  }
  const at::Tensor plain = at::empty({out_features, args.in}, x.options());
  args.out = plain.mutable_data_ptr();
  on_cuda(x, [&](void* stream) { expand_rounded_cuda(args, stream); });
  return plain_product(x, plain, out_features);
}

template <On on>
at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, int64_t out_features) {
  if constexpr (on == On::meta) {
    check_rank("linear", "x", x, 1);
    check_rank("linear", "weight", weight, 2);
    if (bits_of(weight) != 16) {
      check_dtype("linear", "x", x, at::kBFloat16);
    } else {
      check_same_dtype("linear", "weight", weight, x);
    }
    return with_last(x, out_features);
  } else if constexpr (on == On::cuda) {
    if (bits_of(weight) != 16) return rounded_product<on>(x, weight, out_features);
    at::Tensor out;
    if (run_few_rows<on>(FewRowsForm::kPlain, x, weight, nullptr, 0, out_features, out)) return out;
    return plain_product(x, weight, out_features);
  } else {
    return cpu_product(x, weight, out_features);
  }
}

// The kernel of this CPU.
auto kernel_of([[maybe_unused]] LinearFormat format) {
#if defined(__x86_64__)
  const bool integers = format == LinearFormat::kInt8 || format == LinearFormat::kInt4;
  if (integers && active_isa() == Isa::kAvxVnni)
    return has_avx_vnni() ? &linear_integers_vex : &linear_integers_evex;
  if (format == LinearFormat::kBFloat16 && active_isa() == Isa::kAmx) return &linear_bfloat16_amx;
#endif
  return for_isa([](auto isa) { return &linear_cpu<isa.value>; });
}

}  // namespace

void linear_on_threads(LinearArgs args) {
  args.rows_per_pass = linear_rows_per_pass(args.rows, args.in);
  const auto kernel = kernel_of(args.format);
  const int64_t blocks = (args.out_features + kLinearBlock - 1) / kLinearBlock;
  const int64_t chunks = (blocks + kBlocksPerChunk - 1) / kBlocksPerChunk;
  const int64_t chunk_work = args.rows * args.in * kLinearBlock * kBlocksPerChunk;
  parallel_for(0, chunks, std::max<int64_t>(1, kSerialWork / chunk_work), [&](int64_t begin, int64_t end) {
    kernel(args, begin * kBlocksPerChunk, std::min(end * kBlocksPerChunk, blocks),
           thread_scratch(linear_scratch_bytes(args)));
  });
}

TORCH_LIBRARY_FRAGMENT(lamplighter, m) {
  define(m, "linear(Tensor x, Tensor weight, int out_features) -> Tensor",
         [](auto on) { return &linear<on.value>; });
}

}  // namespace lamplighter

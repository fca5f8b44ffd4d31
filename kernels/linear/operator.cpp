#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/linear.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>

#include "kernels/common/meta.h"
#include "kernels/common/operator.h"
#include "kernels/common/scratch.h"
#include "kernels/linear/full_sums.h"
#include "kernels/linear/linear.h"

namespace lamplighter {
namespace {

constexpr int64_t kBlocksPerChunk = 4;            // what threads share out
constexpr int64_t kSerialWork = 2 * 1000 * 1000;  // multiplications worth a thread of their own

// Like at::empty; what fills whole huge pages asks for them, because streaming weights through small pages is
// a fifth slower. Where the system grants none, nothing changes.
at::Tensor empty_weights(at::IntArrayRef shape, const at::TensorOptions& options) {
  constexpr size_t kHugePage = size_t{2} << 20;
  const size_t bytes = static_cast<size_t>(c10::multiply_integers(shape)) * options.dtype().itemsize();
  if (bytes < kHugePage) return at::empty(shape, options);
  void* memory = std::aligned_alloc(kHugePage, (bytes + kHugePage - 1) / kHugePage * kHugePage);
  TORCH_CHECK(memory != nullptr, "pack_linear: out of memory for ", bytes, " bytes of weights");
#if defined(MADV_HUGEPAGE)
  madvise(memory, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);
#endif
  return at::from_blob(
      memory, shape, [](void* p) { std::free(p); }, options);
}

at::Tensor plain_weight(const char* op, const at::Tensor& weight) {
  TORCH_CHECK(weight.dim() == 2, op, ": got weight of shape ", weight.sizes(), ", expected [out, in]");
  TORCH_CHECK(weight.size(0) > 0 && weight.size(1) > 0, op, ": got weight of shape ", weight.sizes(),
              ", expected no empty dimension");
  at::Tensor plain = weight.contiguous();
  check_activations(op, "weight", plain);
  return plain;
}

int64_t padded_for_int8(int64_t in) {
  return (in + 1) / 2 * 2;
}

void check_int8(const at::Tensor& x, const at::Tensor& weight, int64_t out_features) {
  check_tensor("linear", "x", x, at::kBFloat16, weight.device());
  check_contiguous("linear", "weight", weight);
  TORCH_CHECK(x.dim() >= 1 && x.size(-1) > 0, "linear: x has shape ", x.sizes(), ", expected [..., in]");
  TORCH_CHECK(out_features > 0, "linear: out_features is ", out_features, ", expected a positive number");
  check_shape("linear", "weight", weight,
              {(out_features + kLinearBlock - 1) / kLinearBlock,
               padded_for_int8(x.size(-1)) + kLinearInt8Header, kLinearBlock});
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

// Runs the kernel of this CPU over all blocks; args has its sizes, format and pointers.
void run_blocks(LinearArgs& args) {
  args.rows_per_pass = linear_rows_per_pass(args.rows, args.in);
  const bool tiles = active_isa() == Isa::kAmx && args.format == LinearFormat::kBFloat16;
  const auto kernel = tiles ? &linear_bfloat16_amx : for_isa([](auto isa) { return &linear_cpu<isa.value>; });
  const int64_t blocks = (args.out_features + kLinearBlock - 1) / kLinearBlock;
  const int64_t chunks = (blocks + kBlocksPerChunk - 1) / kBlocksPerChunk;
  const int64_t chunk_work = args.rows * args.in * kLinearBlock * kBlocksPerChunk;
  at::parallel_for(0, chunks, std::max<int64_t>(1, kSerialWork / chunk_work),
                   [&](int64_t begin, int64_t end) {
                     kernel(args, begin * kBlocksPerChunk, std::min(end * kBlocksPerChunk, blocks),
                            thread_scratch(linear_scratch_bytes(args)));
                   });
}

void run_int8(LinearArgs& args, const at::Tensor& x) {
  const int64_t in = x.size(-1);
  args.format = LinearFormat::kInt8;
  args.in = padded_for_int8(in);
  const at::Tensor rounded = at::empty({args.rows, args.in}, x.options().dtype(at::kShort));
  const at::Tensor scales = at::empty({args.rows}, x.options().dtype(at::kFloat));
  const auto quantise = for_isa([](auto isa) { return &linear_quantise_cpu<isa.value>; });
  quantise(static_cast<const uint16_t*>(x.const_data_ptr()), args.rows, in, args.in,
           rounded.mutable_data_ptr<int16_t>(), scales.mutable_data_ptr<float>());
  args.x = rounded.const_data_ptr();
  args.row_scales = scales.const_data_ptr<float>();
  run_blocks(args);
}

at::Tensor cpu_product(const at::Tensor& x, const at::Tensor& weight, int64_t out_features) {
  const bool int8 = weight.scalar_type() == at::kChar;
  if (int8) {
    check_int8(x, weight, out_features);
  } else {
    check_floats(x, weight, out_features);
  }
  // Plain weights go to the library: right, but slow for few rows, and its order of sums depends on their
  // number.
  if (weight.dim() == 2) return at::linear(x, weight);

  LinearArgs args{};
  args.out_features = out_features;
  args.rows = x.numel() / x.size(-1);
  at::DimVector shape(x.sizes());
  shape.back() = out_features;
  at::Tensor out = at::empty(shape, x.options());
  if (args.rows == 0) return out;
  args.weight = weight.const_data_ptr();
  args.out = out.mutable_data_ptr();
  if (int8) {
    run_int8(args, x);
  } else {
    args.format = x.scalar_type() == at::kFloat ? LinearFormat::kFloat32 : LinearFormat::kBFloat16;
    args.in = weight.size(1);
    args.x = x.const_data_ptr();
    run_blocks(args);
  }
  return out;
}

// CUDA multiplies by plain weights.
at::Tensor unpacked(const at::Tensor& weight) {
  check_activations("pack_linear", "weight", weight);
  check_shape("pack_linear", "weight", weight, {kAny, kAny});
  return weight;
}

at::Tensor plain_product(const at::Tensor& x, const at::Tensor& weight, int64_t out_features) {
  check_activations("linear", "x", x);
  TORCH_CHECK(x.dim() >= 1, "linear: x has shape ", x.sizes(), ", expected [..., in]");
  check_tensor("linear", "weight", weight, x.scalar_type(), x.device());
  check_shape("linear", "weight", weight, {out_features, x.size(-1)});
  const FullPrecisionSums full_precision;
  return at::linear(x, weight);
}

// Of the CPU's packed layout; CUDA keeps the weight as it is, but packing comes before any tracing.
template <On on>
at::Tensor pack_linear(const at::Tensor& weight) {
  if constexpr (on == On::meta) {
    check_rank("pack_linear", "weight", weight, 2);
    return like(weight, {(weight.sym_size(0) + 15) / 16, weight.sym_size(1), 16});
  } else if constexpr (on == On::cuda) {
    return unpacked(weight);
  } else {
    const at::Tensor plain = plain_weight("pack_linear", weight);
    const ElementType type = element_type(plain);
    const int64_t out = plain.size(0);
    const int64_t in = plain.size(1);
    const int64_t blocks = (out + kLinearBlock - 1) / kLinearBlock;
    at::Tensor packed = empty_weights({blocks, in, kLinearBlock}, plain.options());
    const void* from = plain.const_data_ptr();
    void* to = packed.mutable_data_ptr();
    at::parallel_for(
        0, blocks, std::max<int64_t>(1, kSerialWork / (in * kLinearBlock)),
        [&](int64_t begin, int64_t end) { pack_linear_blocks(from, to, out, in, type, begin, end); });
    return packed;
  }
}

template <On on>
at::Tensor pack_linear_int8(const at::Tensor& weight) {
  if constexpr (on == On::meta) {
    check_rank("pack_linear_int8", "weight", weight, 2);
    const c10::SymInt padded = (weight.sym_size(1) + 1) / 2 * 2;
    return like(weight, {(weight.sym_size(0) + 15) / 16, padded + 4, 16}, at::kChar);
  } else if constexpr (on == On::cuda) {
    return unpacked(weight);  // there are no products of int8 here
  } else {
    const at::Tensor plain = plain_weight("pack_linear_int8", weight);
    const ElementType type = element_type(plain);
    const int64_t out = plain.size(0);
    const int64_t in = plain.size(1);
    TORCH_CHECK(in <= kLinearInt8MostInputs, "pack_linear_int8: got weight of shape ", weight.sizes(),
                ", expected at most ", kLinearInt8MostInputs, " input features");
    const int64_t padded = padded_for_int8(in);
    const int64_t blocks = (out + kLinearBlock - 1) / kLinearBlock;
    at::Tensor packed =
        empty_weights({blocks, padded + kLinearInt8Header, kLinearBlock}, plain.options().dtype(at::kChar));
    const void* from = plain.const_data_ptr();
    void* to = packed.mutable_data_ptr();
    at::parallel_for(0, blocks, std::max<int64_t>(1, kSerialWork / (in * kLinearBlock)),
                     [&](int64_t begin, int64_t end) {
                       pack_linear_int8_blocks(from, to, out, in, padded, type, begin, end);
                     });
    return packed;
  }
}

template <On on>
at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, int64_t out_features) {
  if constexpr (on == On::meta) {
    check_rank("linear", "x", x, 1);
    check_rank("linear", "weight", weight, 2);
    if (weight.scalar_type() == at::kChar) {
      check_dtype("linear", "x", x, at::kBFloat16);
    } else {
      check_same_dtype("linear", "weight", weight, x);
    }
    return with_last(x, out_features);
  } else if constexpr (on == On::cuda) {
    return plain_product(x, weight, out_features);
  } else {
    return cpu_product(x, weight, out_features);
  }
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(lamplighter, m) {
  define(m, "pack_linear(Tensor weight) -> Tensor", [](auto on) { return &pack_linear<on.value>; });
  define(m, "pack_linear_int8(Tensor weight) -> Tensor", [](auto on) { return &pack_linear_int8<on.value>; });
  define(m, "linear(Tensor x, Tensor weight, int out_features) -> Tensor",
         [](auto on) { return &linear<on.value>; });
}

}  // namespace lamplighter

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstdlib>

#include "kernels/common/large_pages.h"
#include "kernels/common/meta.h"
#include "kernels/common/operator.h"
#include "kernels/common/parallel.h"
#include "kernels/linear/linear.h"

// The operators that round weights and lay them out for `linear`.
namespace lamplighter {
namespace {

constexpr int64_t kSerialWeights = 2 * 1000 * 1000;  // weights worth a thread of their own

at::Tensor plain_weight(const char* op, const at::Tensor& weight) {
  TORCH_CHECK(weight.dim() == 2, op, ": got weight of shape ", weight.sizes(), ", expected [out, in]");
  TORCH_CHECK(weight.size(0) > 0 && weight.size(1) > 0, op, ": got weight of shape ", weight.sizes(),
              ", expected no empty dimension");
  at::Tensor plain = weight.contiguous();
  check_activations(op, "weight", plain);
  return plain;
}

at::ScalarType rounded_type(int64_t bits) {
  TORCH_CHECK(bits == 8 || bits == 4, "round_linear: got ", bits, " bits, expected 8 or 4");
  return bits == 8 ? at::kChar : at::kByte;
}

at::Tensor round_on_cpu(const at::Tensor& weight, int bits) {
  const at::Tensor plain = plain_weight("round_linear", weight);
  const int64_t out = plain.size(0);
  const int64_t in = plain.size(1);
  TORCH_CHECK(in <= kLinearMostInputs, "round_linear: got weight of shape ", weight.sizes(),
              ", expected at most ", kLinearMostInputs, " input features");
  at::Tensor rounded =
      at::empty({out, linear_rounded_bytes(bits, in)}, plain.options().dtype(rounded_type(bits)));
  const ElementType type = element_type(plain);
  const void* from = plain.const_data_ptr();
  void* to = rounded.mutable_data_ptr();
  parallel_for(0, out, std::max<int64_t>(1, kSerialWeights / in), [&](int64_t begin, int64_t end) {
    round_linear_features(from, to, in, type, bits, begin, end);
  });
  return rounded;
}

// Integers [out, in] with scales. Rounded on the CPU for every device, in the same bits.
template <On on>
at::Tensor round_linear(const at::Tensor& weight, int64_t bits) {
  if constexpr (on == On::meta) {
    check_rank("round_linear", "weight", weight, 2);
    const c10::SymInt in = weight.sym_size(1);
    const c10::SymInt bytes = bits == 8 ? in + 4 : (in + 63) / 64 * 34;
    return like(weight, {weight.sym_size(0), bytes}, rounded_type(bits));
  } else {
    rounded_type(bits);
    return round_on_cpu(weight.cpu(), static_cast<int>(bits)).to(weight.device());
  }
}

at::Tensor pack_floats(const at::Tensor& weight) {
  const at::Tensor plain = plain_weight("pack_linear", weight);
  const ElementType type = element_type(plain);
  const int64_t out = plain.size(0);
  const int64_t in = plain.size(1);
  const int64_t blocks = (out + kLinearBlock - 1) / kLinearBlock;
  at::Tensor packed = empty_in_large_pages({blocks, in, kLinearBlock}, plain.options());
  const void* from = plain.const_data_ptr();
  void* to = packed.mutable_data_ptr();
  parallel_for(0, blocks, std::max<int64_t>(1, kSerialWeights / (in * kLinearBlock)),
               [&](int64_t begin, int64_t end) { pack_linear_blocks(from, to, out, in, type, begin, end); });
  return packed;
}

at::Tensor pack_rounded(const at::Tensor& rounded) {
  const int bits = rounded.scalar_type() == at::kChar ? 8 : 4;
  TORCH_CHECK(rounded.dim() == 2 && rounded.size(0) > 0 && rounded.size(1) > 4 &&
                  (bits == 8 || rounded.size(1) % 34 == 0),
              "pack_linear: got rounded weight of shape ", rounded.sizes(),
              ", expected what round_linear gives");
  const at::Tensor plain = rounded.contiguous();
  const int64_t out = plain.size(0);
  const int64_t in = bits == 8 ? plain.size(1) - 4 : plain.size(1) / 34 * kLinearGroup;
  const int64_t blocks = (out + kLinearBlock - 1) / kLinearBlock;
  const int64_t lines = linear_integer_block_bytes(bits, in) / kLinearBlock;
  at::Tensor packed = empty_in_large_pages({blocks, lines, kLinearBlock}, plain.options());
  const void* from = plain.const_data_ptr();
  void* to = packed.mutable_data_ptr();
  parallel_for(0, blocks, std::max<int64_t>(1, kSerialWeights / (in * kLinearBlock)),
               [&](int64_t begin, int64_t end) { pack_rounded_blocks(from, to, out, in, bits, begin, end); });
  return packed;
}

bool is_rounded(const at::Tensor& weight) {
  return weight.scalar_type() == at::kChar || weight.scalar_type() == at::kByte;
}

// CUDA keeps weights that are not rounded as they are, but packing comes before any tracing.
template <On on>
at::Tensor pack_linear_bits(const at::Tensor& weight, int64_t bits) {
  if constexpr (on == On::meta) {
    check_rank("pack_linear", "weight", weight, 2);
    const c10::SymInt blocks = (weight.sym_size(0) + 15) / 16;
    if (!is_rounded(weight) && bits == 16) return like(weight, {blocks, weight.sym_size(1), 16});
    const at::Tensor rounded = is_rounded(weight) ? weight : round_linear<on>(weight, bits);
    const bool bytes = rounded.scalar_type() == at::kChar;
    const c10::SymInt width = rounded.sym_size(1);
    return like(rounded, {blocks, bytes ? (width - 4 + 63) / 64 * 64 + 4 : width, 16});
  } else {
    const bool rounds = !is_rounded(weight) && bits != 16;
    const at::Tensor stored = rounds ? round_linear<on>(weight, bits) : weight;
    if constexpr (on == On::cuda) {
      if (is_rounded(stored)) return pack_rounded(stored.cpu()).to(weight.device());
      check_activations("pack_linear", "weight", stored);
      check_shape("pack_linear", "weight", stored, {kAny, kAny});
      return stored;
    } else {
      return is_rounded(stored) ? pack_rounded(stored) : pack_floats(stored);
    }
  }
}

template <On on>
at::Tensor pack_linear(const at::Tensor& weight) {
  return pack_linear_bits<on>(weight, 16);
}

// For draft models: the CPU streams bytes faster, on CUDA their weights stay as they are.
template <On on>
at::Tensor pack_linear_int8(const at::Tensor& weight) {
  return pack_linear_bits<on>(weight, on == On::cuda ? 16 : 8);
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(lamplighter, m) {
  define(m, "round_linear(Tensor weight, int bits) -> Tensor",
         [](auto on) { return &round_linear<on.value>; });
  // bits: 8 or 4, to which floats are rounded; 16: they stay.
  define(m, "pack_linear_bits(Tensor weight, int bits) -> Tensor",
         [](auto on) { return &pack_linear_bits<on.value>; });
  define(m, "pack_linear(Tensor weight) -> Tensor", [](auto on) { return &pack_linear<on.value>; });
  define(m, "pack_linear_int8(Tensor weight) -> Tensor", [](auto on) { return &pack_linear_int8<on.value>; });
}

}  // namespace lamplighter

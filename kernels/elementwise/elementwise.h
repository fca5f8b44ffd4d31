#pragma once

#include <cstdint>

#include "kernels/common/element_type.h"
#include "kernels/common/isa.h"

namespace lamplighter {

// rms_norm: out = round(round(x * rsqrt(mean(x^2) + eps)) * weight), row by row (Zhang & Sennrich 2019; both
// roundings as in the official checkpoints' code). add_rms_norm: residual = round(residual + x) first, then
// the norm of the new residual. All pointers address contiguous elements of `type`.
struct RmsNormArgs {
  void* residual;      // [rows, width], updated; null for rms_norm
  const void* x;       // [rows, width]
  const void* weight;  // [width]
  void* out;           // [rows, width]
  int64_t rows;
  int64_t width;
  float eps;
  ElementType type;
};

// out = round(round(silu(gate)) * up), silu(z) = z / (1 + exp(-z)).
struct SiluMulArgs {
  const void* gate_up;  // [rows, 2 * width]: gate, then up
  void* out;            // [rows, width]
  int64_t rows;
  int64_t width;
  ElementType type;
};

// out = gelu(x) = x / 2 * (1 + erf(x / sqrt(2))), the exact form (Hendrycks & Gimpel 2016).
struct GeluArgs {
  const void* x;  // [rows, width]
  void* out;      // [rows, width]
  int64_t rows;
  int64_t width;
  ElementType type;
};

// norm_heads: values = round(round((x - mean) * rsqrt(variance + eps)) * weight + bias) for each of the first
// `heads` heads of a row by itself, in place (Chameleon's norm of queries and keys); a LayerNorm, so the
// variance is that of the head's features, divided by their number.
struct NormHeadsArgs {
  void* values;        // [rows, width]: the first heads * head_dim of a row are normed
  const void* weight;  // [heads, head_dim]
  const void* bias;    // [heads, head_dim]
  int64_t rows;
  int64_t width;
  int64_t heads;
  int64_t head_dim;
  float eps;
  ElementType type;
};

// CPU kernels over the rows [begin, end); fp32 and bf16. Row-invariant: a row's bits depend on that row
// alone.
template <Isa isa>
void rms_norm_cpu(const RmsNormArgs& args, int64_t begin, int64_t end);
template <Isa isa>
void silu_mul_cpu(const SiluMulArgs& args, int64_t begin, int64_t end);
template <Isa isa>
void gelu_cpu(const GeluArgs& args, int64_t begin, int64_t end);
template <Isa isa>
void norm_heads_cpu(const NormHeadsArgs& args, int64_t begin, int64_t end);

// CUDA kernels over all rows, queued on `stream` (a cudaStream_t); fp32, bf16 and fp16.
void rms_norm_cuda(const RmsNormArgs& args, void* stream);
void silu_mul_cuda(const SiluMulArgs& args, void* stream);
void gelu_cuda(const GeluArgs& args, void* stream);
void norm_heads_cuda(const NormHeadsArgs& args, void* stream);

}  // namespace lamplighter

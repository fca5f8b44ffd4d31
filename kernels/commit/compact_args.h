#pragma once

#include <ATen/core/Tensor.h>

#include "kernels/common/exported.h"

namespace lamplighter {
namespace ops {

// cache [layers, 2, S, kv_heads, slots, head_dim], lengths int64 [S], path int64 [I, A], count int64 [I]:
// moves cache rows lengths[s] + path[i][j] -> lengths[s] + j for j = 1..count[i], in place.
LAMPLIGHTER_EXPORTED void compact_cache(at::Tensor& cache, const at::Tensor& lengths, const at::Tensor& path,
                                        const at::Tensor& count);

}  // namespace ops

struct CompactArgs;

// Arguments checked and turned into what kernels take. Contents are not read.
LAMPLIGHTER_EXPORTED CompactArgs compact_args(at::Tensor& cache, const at::Tensor& lengths,
                                              const at::Tensor& path, const at::Tensor& count);

}  // namespace lamplighter

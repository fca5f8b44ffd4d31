#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <tuple>

#include "kernels/common/exported.h"
#include "kernels/sampling/distribution_args.h"

namespace lamplighter {
namespace ops {

// rows [I, W, V], scores fp32 [I, W] -> tokens int64 and scores fp32 of the candidates
// path * k + rank [I, W * k], the k best candidates int64 [I, k].
LAMPLIGHTER_EXPORTED std::tuple<at::Tensor, at::Tensor, at::Tensor> expand_dynamic(const Distributions& rows,
                                                                                   const at::Tensor& scores,
                                                                                   std::int64_t k);

// tokens int64 and scores fp32 [I, P] of the pool, frontiers int64 [I, passes, k], P = k + passes * k * k
// -> tokens, parents, depths int64 [I, nodes + 1], mask int64 [I, nodes + 1, 1] and pool indices int64 [I,
// nodes] of the tree.
LAMPLIGHTER_EXPORTED std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor> rerank_dynamic(
    const at::Tensor& tokens, const at::Tensor& scores, const at::Tensor& frontiers, std::int64_t nodes);

}  // namespace ops

struct ExpandArgs;
struct RerankArgs;

// Arguments checked and turned into what kernels take, without the addresses of results.
LAMPLIGHTER_EXPORTED ExpandArgs expand_args(const ops::Distributions& rows, const at::Tensor& scores,
                                            std::int64_t k);
LAMPLIGHTER_EXPORTED RerankArgs rerank_args(const at::Tensor& tokens, const at::Tensor& scores,
                                            const at::Tensor& frontiers, std::int64_t nodes);
// Room for the results, the addresses of which they set; in the order of the operators' results.
LAMPLIGHTER_EXPORTED std::tuple<at::Tensor, at::Tensor, at::Tensor> expand_results(ExpandArgs& args,
                                                                                   const at::Tensor& scores);
LAMPLIGHTER_EXPORTED std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor> rerank_results(
    RerankArgs& args, const at::Tensor& tokens);

}  // namespace lamplighter

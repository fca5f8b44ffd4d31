#include <ATen/ops/empty.h>

#include <algorithm>
#include <optional>

#include "kernels/common/cpu_executor.h"
#include "kernels/common/meta.h"
#include "kernels/common/on_cuda.h"
#include "kernels/common/operator.h"
#include "kernels/sampling/distribution_checks.h"
#include "kernels/sampling/distributions_on_threads.h"
#include "kernels/trees/dynamic.h"
#include "kernels/trees/dynamic_args.h"
#include "kernels/trees/dynamic_body.h"

namespace lamplighter {
namespace {

using Three = std::tuple<at::Tensor, at::Tensor, at::Tensor>;
using Five = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor>;

size_t with_cells(size_t bytes) {
  return (kExecutorCells * sizeof(double) + bytes + 63) / 64 * 64;
}

// f(executor, image, memory) for every image, `memory` being what `bytes` leaves behind the executor's cells.
template <class F>
void over_images(int64_t images, size_t bytes, F f) {
  struct Local {};
  void* scratch = thread_scratch(bytes);
  CpuExecutor<Local> executor(scratch);
  int* memory = reinterpret_cast<int*>(static_cast<double*>(scratch) + kExecutorCells);
  for (int64_t image = 0; image < images; ++image) f(executor, image, memory);
}

at::Tensor integers(int64_t*& address, at::IntArrayRef sizes, const at::Tensor& model) {
  at::Tensor tensor = at::empty(sizes, model.options().dtype(at::kLong));
  address = tensor.mutable_data_ptr<int64_t>();
  return tensor;
}

}  // namespace

size_t expand_scratch_bytes(int64_t vocabulary, int64_t candidates) {
  const auto v = static_cast<size_t>(vocabulary);
  return with_cells(v * (2 * sizeof(float) + sizeof(int)) +
                    std::max(v, static_cast<size_t>(candidates)) * sizeof(int));
}

size_t rerank_scratch_bytes(int64_t pool) {
  return with_cells(static_cast<size_t>(pool) * sizeof(int));
}

ExpandArgs expand_args(const ops::Distributions& rows, const at::Tensor& scores, int64_t k) {
  constexpr const char* kOp = "expand_dynamic";
  const CheckedRows checked = distribution_rows(kOp, "values", rows);
  check_tensor(kOp, "scores", scores, at::kFloat, rows.values.device());
  check_shape(kOp, "scores", scores, {checked.images, checked.rows.rows});
  const int64_t most = std::min<int64_t>(kMostDynamicChildren, checked.rows.vocabulary);
  TORCH_CHECK(k >= 1 && k <= most, kOp, ": k is ", k, ", expected 1..", most);
  TORCH_CHECK(checked.rows.rows >= 1, kOp, ": values have shape ", rows.values.sizes(),
              ", expected at least one row per image");
  ExpandArgs args{};
  args.rows = checked.rows;
  args.scores = scores.const_data_ptr<float>();
  args.images = checked.images;
  args.k = k;
  return args;
}

RerankArgs rerank_args(const at::Tensor& tokens, const at::Tensor& scores, const at::Tensor& frontiers,
                       int64_t nodes) {
  constexpr const char* kOp = "rerank_dynamic";
  check_tensor(kOp, "tokens", tokens, at::kLong, tokens.device());
  check_tensor(kOp, "frontiers", frontiers, at::kLong, tokens.device());
  check_shape(kOp, "frontiers", frontiers, {kAny, kAny, kAny});
  RerankArgs args{};
  args.images = frontiers.size(0);
  args.passes = frontiers.size(1);
  args.k = frontiers.size(2);
  TORCH_CHECK(args.k >= 1 && args.k <= kMostDynamicChildren, kOp, ": frontiers has shape ", frontiers.sizes(),
              ", expected a last size of 1..", kMostDynamicChildren);
  args.pool = args.k + args.passes * args.k * args.k;
  check_shape(kOp, "tokens", tokens, {args.images, args.pool});
  check_tensor(kOp, "scores", scores, at::kFloat, tokens.device());
  check_shape(kOp, "scores", scores, {args.images, args.pool});
  const int64_t most = std::min<int64_t>(kMostDynamicNodes, args.pool);
  TORCH_CHECK(nodes >= 0 && nodes <= most, kOp, ": nodes is ", nodes, ", expected 0..", most);
  args.pool_tokens = tokens.const_data_ptr<int64_t>();
  args.scores = scores.const_data_ptr<float>();
  args.frontiers = frontiers.const_data_ptr<int64_t>();
  args.nodes = nodes;
  return args;
}

Three expand_results(ExpandArgs& args, const at::Tensor& scores) {
  const int64_t candidates = args.rows.rows * args.k;
  at::Tensor pool_scores = at::empty({args.images, candidates}, scores.options());
  args.pool_scores = pool_scores.mutable_data_ptr<float>();
  return {integers(args.tokens, {args.images, candidates}, scores), pool_scores,
          integers(args.frontier, {args.images, args.k}, scores)};
}

Five rerank_results(RerankArgs& args, const at::Tensor& tokens) {
  const int64_t images = args.images, nodes = args.nodes;
  return {
      integers(args.tokens, {images, nodes + 1}, tokens), integers(args.parents, {images, nodes + 1}, tokens),
      integers(args.depths, {images, nodes + 1}, tokens), integers(args.mask, {images, nodes + 1, 1}, tokens),
      integers(args.pool_index, {images, nodes}, tokens)};
}

namespace ops {

Three expand_dynamic(const Distributions& rows, const at::Tensor& scores, std::int64_t k) {
  return on_device("lamplighter::expand_dynamic", rows.values, [&](auto on) -> Three {
    if constexpr (on == On::meta) {
      const c10::SymInt images = check_distributions("expand_dynamic", "values", rows);
      check_dtype("expand_dynamic", "scores", scores, at::kFloat);
      const c10::SymInt pool = rows.values.sym_size(1) * k;
      return {like(scores, {images, pool}, at::kLong), like(scores, {images, pool}),
              like(scores, {images, k}, at::kLong)};
    } else {
      ExpandArgs args = expand_args(rows, scores, k);
      Three results = expand_results(args, scores);
      const size_t bytes = expand_scratch_bytes(args.rows.vocabulary, args.rows.rows * k);
      if constexpr (on == On::cuda) {
        const CudaScratch scratch(scores, args.images * args.rows.rows, bytes);
        on_cuda(scores, [&](void* stream) { expand_cuda(args, scratch.get(), stream); });
      } else {
        distributions_on_threads(args, args.rows, bytes,
                                 for_isa([](auto isa) { return &expand_cpu<isa.value>; }));
        over_images(args.images, bytes, [&](auto& executor, int64_t image, int* memory) {
          dynamic::choose_frontier(executor, args, image, memory);
        });
      }
      return results;
    }
  });
}

Five rerank_dynamic(const at::Tensor& tokens, const at::Tensor& scores, const at::Tensor& frontiers,
                    std::int64_t nodes) {
  return on_device("lamplighter::rerank_dynamic", tokens, [&](auto on) -> Five {
    if constexpr (on == On::meta) {
      check_rank("rerank_dynamic", "tokens", tokens, 2);
      check_dtype("rerank_dynamic", "tokens", tokens, at::kLong);
      check_dtype("rerank_dynamic", "scores", scores, at::kFloat);
      check_dtype("rerank_dynamic", "frontiers", frontiers, at::kLong);
      const c10::SymInt images = tokens.sym_size(0);
      const SymSizes tree = {images, nodes + 1};
      return {like(tokens, tree), like(tokens, tree), like(tokens, tree),
              like(tokens, {images, nodes + 1, 1}), like(tokens, {images, nodes})};
    } else {
      RerankArgs args = rerank_args(tokens, scores, frontiers, nodes);
      Five results = rerank_results(args, tokens);
      const size_t bytes = rerank_scratch_bytes(args.pool);
      if constexpr (on == On::cuda) {
        const CudaScratch scratch(tokens, args.images, bytes);
        on_cuda(tokens, [&](void* stream) { rerank_cuda(args, scratch.get(), stream); });
      } else {
        over_images(args.images, bytes, [&](auto& executor, int64_t image, int* memory) {
          dynamic::rerank_image(executor, args, image, memory);
        });
      }
      return results;
    }
  });
}

}  // namespace ops

TORCH_LIBRARY_FRAGMENT(lamplighter, m) {
  define_adaptor(m,
                 "expand_dynamic(Tensor values, Tensor scores, int k, Tensor? statistics=None) "
                 "-> (Tensor tokens, Tensor pool_scores, Tensor frontier)",
                 [](const at::Tensor& values, const at::Tensor& scores, int64_t k,
                    const std::optional<at::Tensor>& statistics) {
                   return ops::expand_dynamic(distributions(values, statistics), scores, k);
                 });
  define_adaptor(m,
                 "rerank_dynamic(Tensor tokens, Tensor scores, Tensor frontiers, int nodes) "
                 "-> (Tensor tree_tokens, Tensor parents, Tensor depths, Tensor mask, Tensor pool_index)",
                 &ops::rerank_dynamic);
}

}  // namespace lamplighter

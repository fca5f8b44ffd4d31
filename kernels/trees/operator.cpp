#include <ATen/ops/empty.h>

#include <algorithm>
#include <optional>
#include <string>
#include <tuple>

#include "kernels/common/cpu_executor.h"
#include "kernels/common/meta.h"
#include "kernels/common/on_cuda.h"
#include "kernels/common/operator.h"
#include "kernels/ops.h"
#include "kernels/sampling/args.h"
#include "kernels/sampling/over_rows.h"
#include "kernels/trees/children_args.h"
#include "kernels/trees/children_body.h"
#include "kernels/trees/dynamic_args.h"
#include "kernels/trees/dynamic_body.h"
#include "kernels/trees/results.h"

namespace lamplighter {
namespace {

using Two = std::tuple<at::Tensor, at::Tensor>;
using Three = std::tuple<at::Tensor, at::Tensor, at::Tensor>;
using Five = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor>;

size_t with_cells(size_t bytes) {
  return (kExecutorCells * sizeof(double) + bytes + 63) / 64 * 64;
}

}  // namespace

size_t draw_children_scratch_bytes(int64_t vocabulary) {
  return with_cells(static_cast<size_t>(vocabulary) * (children::kScratchPerToken + sizeof(float)));
}

size_t expand_scratch_bytes(int64_t vocabulary, int64_t candidates) {
  const auto v = static_cast<size_t>(vocabulary);
  return with_cells(v * (2 * sizeof(float) + sizeof(int)) +
                    std::max(v, static_cast<size_t>(candidates)) * sizeof(int));
}

size_t rerank_scratch_bytes(int64_t pool) {
  return with_cells(static_cast<size_t>(pool) * sizeof(int));
}

namespace {

// f(executor, image, memory) for every image, `memory` being what `bytes` leaves behind the executor's cells.
template <class F>
void over_images(int64_t images, size_t bytes, F f) {
  struct Local {};
  void* scratch = thread_scratch(bytes);
  CpuExecutor<Local> executor(scratch);
  int* memory = reinterpret_cast<int*>(static_cast<double*>(scratch) + kExecutorCells);
  for (int64_t image = 0; image < images; ++image) f(executor, image, memory);
}

template <On on>
Two draw_children(const at::Tensor& values, const at::Tensor& seeds, const at::Tensor& steps,
                  const at::Tensor& nodes, int64_t count, bool sampled,
                  const std::optional<at::Tensor>& statistics) {
  if constexpr (on == On::meta) {
    const c10::SymInt images = check_distributions("draw_children", "values", values, statistics);
    check_dtype("draw_children", "seeds", seeds, at::kLong);
    check_dtype("draw_children", "steps", steps, at::kLong);
    check_dtype("draw_children", "nodes", nodes, at::kLong);
    const SymSizes sizes = {images, values.sym_size(1), count};
    return {like(seeds, sizes), like(seeds, sizes, at::kFloat)};
  } else {
    const ops::Draws draws = {seeds, steps, nodes, count, sampled};
    DrawChildrenArgs args = draw_children_args(values, or_undefined(statistics), draws);
    const ChildrenResults results(args, seeds);
    const size_t bytes = draw_children_scratch_bytes(args.rows.vocabulary);
    if constexpr (on == On::cuda) {
      const CudaScratch scratch(seeds, args.images * args.rows.rows, bytes);
      on_cuda(values, [&](void* stream) { draw_children_cuda(args, scratch.get(), stream); });
    } else {
      over_rows(args, args.rows, bytes, for_isa([](auto isa) { return &draw_children_cpu<isa.value>; }));
    }
    return {results.tokens, results.conditional};
  }
}

// Both in one launch.
Three draft_in_one(const at::Tensor& logits, const ops::Filtering& filtering, const ops::Draws& draws) {
  GuideAndFilterArgs filter = guide_and_filter_args(logits, filtering);
  const at::Tensor statistics = statistics_of(filter, logits);
  DrawChildrenArgs draw = draw_children_args(logits, statistics, draws);
  const ChildrenResults results(draw, draws.seeds);
  const int64_t blocks = draw.images * draw.rows.rows;
  const CudaScratch scratch(logits, blocks, draw_children_scratch_bytes(draw.rows.vocabulary));
  on_cuda(logits, [&](void* stream) {
    const CudaScratch rows(logits, blocks, draft_children_cuda_bytes(filter.logits));
    draft_children_cuda(filter, draw, scratch.get(), rows.get<float>(), stream);
  });
  return {statistics, results.tokens, results.conditional};
}

template <On on>
Three draft_children(const at::Tensor& logits, const at::Tensor& guidance, const at::Tensor& temperature,
                     const at::Tensor& top_k, const at::Tensor& top_p, c10::string_view order,
                     const at::Tensor& seeds, const at::Tensor& steps, const at::Tensor& nodes, int64_t count,
                     bool sampled) {
  const ops::Filtering filtering = {guidance, temperature, top_k, top_p, std::string(order)};
  if constexpr (on == On::cuda) {
    return draft_in_one(logits, filtering, {seeds, steps, nodes, count, sampled});
  } else {  // one after the other: a CPU launches nothing
    const ops::Distributions rows = ops::guide_and_filter(logits, filtering);
    auto [tokens, conditional] =
        draw_children<on>(logits, seeds, steps, nodes, count, sampled, rows.statistics);
    return {rows.statistics, tokens, conditional};
  }
}

template <On on>
Three expand_dynamic(const at::Tensor& values, const at::Tensor& scores, int64_t k,
                     const std::optional<at::Tensor>& statistics) {
  if constexpr (on == On::meta) {
    const c10::SymInt images = check_distributions("expand_dynamic", "values", values, statistics);
    check_dtype("expand_dynamic", "scores", scores, at::kFloat);
    const c10::SymInt pool = values.sym_size(1) * k;
    return {like(scores, {images, pool}, at::kLong), like(scores, {images, pool}),
            like(scores, {images, k}, at::kLong)};
  } else {
    ExpandArgs args = expand_args(values, scores, k, or_undefined(statistics));
    const ExpandResults results(args, scores);
    const size_t bytes = expand_scratch_bytes(args.rows.vocabulary, args.rows.rows * k);
    if constexpr (on == On::cuda) {
      const CudaScratch scratch(scores, args.images * args.rows.rows, bytes);
      on_cuda(values, [&](void* stream) { expand_cuda(args, scratch.get(), stream); });
    } else {
      over_rows(args, args.rows, bytes, for_isa([](auto isa) { return &expand_cpu<isa.value>; }));
      over_images(args.images, bytes, [&](auto& executor, int64_t image, int* memory) {
        dynamic::choose_frontier(executor, args, image, memory);
      });
    }
    return {results.tokens, results.pool_scores, results.frontier};
  }
}

template <On on>
Five rerank_dynamic(const at::Tensor& tokens, const at::Tensor& scores, const at::Tensor& frontiers,
                    int64_t nodes) {
  if constexpr (on == On::meta) {
    check_rank("rerank_dynamic", "tokens", tokens, 2);
    check_dtype("rerank_dynamic", "tokens", tokens, at::kLong);
    check_dtype("rerank_dynamic", "scores", scores, at::kFloat);
    check_dtype("rerank_dynamic", "frontiers", frontiers, at::kLong);
    const c10::SymInt images = tokens.sym_size(0);
    const SymSizes tree = {images, nodes + 1};
    return {like(tokens, tree), like(tokens, tree), like(tokens, tree), like(tokens, {images, nodes + 1, 1}),
            like(tokens, {images, nodes})};
  } else {
    RerankArgs args = rerank_args(tokens, scores, frontiers, nodes);
    const RerankResults results(args, tokens);
    const size_t bytes = rerank_scratch_bytes(args.pool);
    if constexpr (on == On::cuda) {
      const CudaScratch scratch(tokens, args.images, bytes);
      on_cuda(tokens, [&](void* stream) { rerank_cuda(args, scratch.get(), stream); });
    } else {
      over_images(args.images, bytes, [&](auto& executor, int64_t image, int* memory) {
        dynamic::rerank_image(executor, args, image, memory);
      });
    }
    return {results.tokens, results.parents, results.depths, results.mask, results.pool_index};
  }
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(lamplighter, m) {
  define(m,
         "draw_children(Tensor values, Tensor seeds, Tensor steps, Tensor nodes, int count, bool sampled, "
         "Tensor? statistics=None) -> (Tensor tokens, Tensor conditional)",
         [](auto on) { return &draw_children<on.value>; });
  define(m,
         "draft_children(Tensor logits, Tensor guidance, Tensor temperature, Tensor top_k, Tensor top_p, "
         "str order, Tensor seeds, Tensor steps, Tensor nodes, int count, bool sampled) "
         "-> (Tensor statistics, Tensor tokens, Tensor conditional)",
         [](auto on) { return &draft_children<on.value>; });
  define(m,
         "expand_dynamic(Tensor values, Tensor scores, int k, Tensor? statistics=None) "
         "-> (Tensor tokens, Tensor pool_scores, Tensor frontier)",
         [](auto on) { return &expand_dynamic<on.value>; });
  define(m,
         "rerank_dynamic(Tensor tokens, Tensor scores, Tensor frontiers, int nodes) "
         "-> (Tensor tree_tokens, Tensor parents, Tensor depths, Tensor mask, Tensor pool_index)",
         [](auto on) { return &rerank_dynamic<on.value>; });
}

}  // namespace lamplighter

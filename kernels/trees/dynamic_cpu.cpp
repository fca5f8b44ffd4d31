#include <torch/library.h>

#include <algorithm>
#include <optional>
#include <tuple>

#include "kernels/common/cpu_rows.h"
#include "kernels/trees/dynamic_args.h"
#include "kernels/trees/dynamic_results.h"
#include "kernels/trees/dynamic_rows.h"

namespace lamplighter {

size_t expand_scratch_bytes(int64_t vocabulary, int64_t candidates) {
  const auto v = static_cast<size_t>(vocabulary);
  const size_t bytes = kExecutorCells * sizeof(double) + v * (2 * sizeof(float) + sizeof(int)) +
                       std::max(v, static_cast<size_t>(candidates)) * sizeof(int);
  return (bytes + 63) / 64 * 64;
}

size_t rerank_scratch_bytes(int64_t pool) {
  const size_t bytes = kExecutorCells * sizeof(double) + static_cast<size_t>(pool) * sizeof(int);
  return (bytes + 63) / 64 * 64;
}

namespace {

struct Local {};

int* after_cells(void* scratch) {
  return reinterpret_cast<int*>(static_cast<double*>(scratch) + kExecutorCells);
}

}  // namespace

void choose_frontiers(const ExpandArgs& args, int64_t begin, int64_t end, void* scratch) {
  CpuExecutor<Local> executor(scratch);
  for (int64_t image = begin; image < end; ++image) {
    dynamic::choose_frontier(executor, args, image, after_cells(scratch));
  }
}

void rerank(const RerankArgs& args, int64_t begin, int64_t end, void* scratch) {
  CpuExecutor<Local> executor(scratch);
  for (int64_t image = begin; image < end; ++image) {
    dynamic::rerank_image(executor, args, image, after_cells(scratch));
  }
}

namespace {

std::tuple<at::Tensor, at::Tensor, at::Tensor> expand_dynamic(const at::Tensor& values,
                                                              const at::Tensor& scores, int64_t k,
                                                              const std::optional<at::Tensor>& statistics) {
  ExpandArgs args = expand_args(values, scores, k, or_undefined(statistics));
  const ExpandResults results(args, scores);
  const ThreadScratch scratch(expand_scratch_bytes(args.rows.vocabulary, args.rows.rows * k));
  const auto kernel = for_isa(expand_rows_portable, expand_rows_avx2, expand_rows_avx512);
  for_row_parts(args.images * args.rows.rows, args.rows.vocabulary,
                [&](int64_t begin, int64_t end) { kernel(args, begin, end, scratch.get()); });
  choose_frontiers(args, 0, args.images, scratch.get());
  return results.tuple();
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor> rerank_dynamic(
    const at::Tensor& tokens, const at::Tensor& scores, const at::Tensor& frontiers, int64_t nodes) {
  RerankArgs args = rerank_args(tokens, scores, frontiers, nodes);
  const RerankResults results(args, tokens);
  const ThreadScratch scratch(rerank_scratch_bytes(args.pool));
  rerank(args, 0, args.images, scratch.get());
  return results.tuple();
}

}  // namespace

TORCH_LIBRARY_IMPL(lamplighter, CPU, m) {
  m.impl("expand_dynamic", &expand_dynamic);
  m.impl("rerank_dynamic", &rerank_dynamic);
}

}  // namespace lamplighter

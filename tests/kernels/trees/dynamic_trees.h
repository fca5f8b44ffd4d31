#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "kernels/ops.h"

// Dynamic trees grown by the operators over a draft model that is a function.
namespace lamplighter::test {

using Path = std::vector<int64_t>;

inline std::vector<int64_t> values(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.contiguous();
  const int64_t* p = flat.const_data_ptr<int64_t>();
  return {p, p + flat.numel()};
}

inline std::vector<double> doubles(const at::Tensor& tensor) {
  const at::Tensor wide = tensor.to(at::kDouble).contiguous();
  const double* p = wide.const_data_ptr<double>();
  return {p, p + wide.numel()};
}

// The pool of one tree per image, built pass by pass.
struct Pool {
  at::Tensor tokens, scores, frontiers;  // [I, P], [I, P], [I, passes, k]
};

// Distributions after a path of tokens of an image.
using DraftModel = std::function<at::Tensor(int64_t image, const Path& path)>;

inline Pool grow(const DraftModel& drafter, int64_t images, int64_t k, int64_t passes) {
  std::vector<at::Tensor> tokens, scores, frontiers;
  std::vector<std::vector<Path>> paths(static_cast<size_t>(images), {Path()});
  at::Tensor frontier_scores = at::zeros({images, 1});
  for (int64_t pass = 0; pass <= passes; ++pass) {
    std::vector<at::Tensor> rows;
    for (int64_t image = 0; image < images; ++image) {
      std::vector<at::Tensor> slots;
      for (const Path& path : paths[static_cast<size_t>(image)]) slots.push_back(drafter(image, path));
      rows.push_back(at::stack(slots));
    }
    const auto [ids, logs, frontier] = ops::expand_dynamic(at::stack(rows), frontier_scores, k);
    tokens.push_back(ids);
    scores.push_back(logs);
    if (pass == passes) break;
    frontiers.push_back(frontier);
    frontier_scores = logs.gather(1, frontier);
    for (int64_t image = 0; image < images; ++image) {
      std::vector<Path>& slots = paths[static_cast<size_t>(image)];
      std::vector<Path> next;
      for (const int64_t candidate : values(frontier[image])) {
        Path path = slots[static_cast<size_t>(candidate / k)];
        path.push_back(ids[image][candidate].item<int64_t>());
        next.push_back(path);
      }
      slots = next;
    }
  }
  const at::Tensor none = at::zeros({images, 0, k}, at::kLong);
  return {at::cat(tokens, 1), at::cat(scores, 1), frontiers.empty() ? none : at::stack(frontiers, 1)};
}

struct Reranked {
  at::Tensor tokens, parents, depths, mask, pool_index;
};

inline Reranked reranked(const Pool& pool, int64_t nodes) {
  const auto [tokens, parents, depths, mask, pool_index] =
      ops::rerank_dynamic(pool.tokens, pool.scores, pool.frontiers, nodes);
  return {tokens, parents, depths, mask, pool_index};
}

}  // namespace lamplighter::test

#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <tuple>
#include <vector>

#include "kernels/ops.h"
#include "tests/kernels/verify/numbers_of.h"
#include "tests/reference/dynamic.h"
#include "tests/reference/verify.h"

// Calls the operators instead of the host reference, one image at a time.
namespace lamplighter::reference {

template <class Stored, class Value>
at::Tensor to_tensor(const std::vector<Value>& values, std::vector<std::int64_t> shape) {
  at::Tensor tensor = at::empty(shape, c10::CppTypeToScalarType<Stored>::value);
  std::transform(values.begin(), values.end(), tensor.mutable_data_ptr<Stored>(),
                 [](Value value) { return static_cast<Stored>(value); });
  return tensor;
}

inline at::Tensor rows_to_tensor(const std::vector<Distribution>& rows, std::int64_t width) {
  std::vector<double> flat;
  for (const Distribution& row : rows) flat.insert(flat.end(), row.begin(), row.end());
  return to_tensor<float>(flat, {1, static_cast<std::int64_t>(rows.size()), width});
}

template <class Value, class Stored>
std::vector<Value> to_vector(const at::Tensor& tensor) {
  const Stored* data = tensor.const_data_ptr<Stored>();
  return std::vector<Value>(data, data + tensor.numel());
}

inline Verdict verify_by_operator(const ScoredTree& tree, const AcceptanceOptions& options,
                                  const NeighbourTable* table) {
  const auto nodes = static_cast<std::int64_t>(tree.parents.size());
  const auto vocabulary = static_cast<std::int64_t>(tree.target[0].size());
  std::vector<std::int64_t> depths(tree.parents.size());
  for (std::size_t n = 1; n < depths.size(); ++n) {
    depths[n] = depths[static_cast<std::size_t>(tree.parents[n])] + 1;
  }
  ops::ScoredTree in;
  in.target = rows_to_tensor(tree.target, vocabulary);
  in.draft = rows_to_tensor(tree.draft, vocabulary);
  in.tokens = to_tensor<std::int64_t>(tree.tokens, {1, nodes});
  in.parents = to_tensor<std::int64_t>(tree.parents, {1, nodes});
  in.draft_rows = to_tensor<std::int64_t>(tree.draft_rows, {1, nodes});
  // The greatest uniform below 1 must stay below 1.
  std::vector<double> uniforms = tree.uniforms;
  for (double& uniform : uniforms) uniform = std::min(uniform, 1 - 1.0 / (1 << 24));
  in.uniforms = to_tensor<float>(uniforms, {1, static_cast<std::int64_t>(uniforms.size())});
  in.temperature = to_tensor<float>(std::vector<double>{options.greedy ? 0.0 : 1.0}, {1});
  in.depth = *std::max_element(depths.begin(), depths.end());

  ops::VerifyOptions how;
  how.rule = options.rule;
  how.residual = options.residual;
  how.sampled = options.proposal == Proposal::sampled;
  how.k = options.k;
  how.first_image_id = options.first_image_id;
  how.numbers = test::numbers_of(how.rule, {options.bounds.begin(), options.bounds.end()});
  if (table != nullptr) {
    how.neighbours = to_tensor<std::int32_t>(table->ids, {table->codes, table->width});
    how.k = std::min(how.k, table->width);
  }
  how.syntax_ids =
      to_tensor<std::int64_t>(options.syntax_ids, {static_cast<std::int64_t>(options.syntax_ids.size())});
  const ops::Verified result = ops::verify_tree(in, how);

  Verdict verdict;
  verdict.path = to_vector<std::int64_t, std::int64_t>(result.path);
  verdict.path.resize(static_cast<std::size_t>(result.count.item<std::int64_t>()) + 1);
  verdict.final = to_vector<double, float>(result.final);
  verdict.token = result.token.item<std::int64_t>();
  verdict.status = result.status.item<std::int64_t>();
  return verdict;
}

inline Expansion expand_by_operator(const std::vector<Distribution>& probabilities,
                                    const std::vector<double>& scores, std::int64_t k) {
  const auto width = static_cast<std::int64_t>(probabilities[0].size());
  const at::Tensor above = to_tensor<float>(scores, {1, static_cast<std::int64_t>(scores.size())});
  const auto [tokens, pool, frontier] = ops::expand_dynamic(rows_to_tensor(probabilities, width), above, k);
  return {to_vector<std::int64_t, std::int64_t>(tokens), to_vector<double, float>(pool),
          to_vector<std::int64_t, std::int64_t>(frontier)};
}

inline DynamicTree rerank_by_operator(const std::vector<std::int64_t>& tokens,
                                      const std::vector<double>& scores,
                                      const std::vector<std::vector<std::int64_t>>& frontiers, std::int64_t k,
                                      std::int64_t nodes) {
  std::vector<std::int64_t> flat;
  for (const auto& frontier : frontiers) flat.insert(flat.end(), frontier.begin(), frontier.end());
  const auto pool = static_cast<std::int64_t>(tokens.size());
  const auto [tree_tokens, parents, depths, mask, pool_index] = ops::rerank_dynamic(
      to_tensor<std::int64_t>(tokens, {1, pool}), to_tensor<float>(scores, {1, pool}),
      to_tensor<std::int64_t>(flat, {1, static_cast<std::int64_t>(frontiers.size()), k}), nodes);
  DynamicTree tree;
  tree.tokens = to_vector<std::int64_t, std::int64_t>(tree_tokens);
  tree.parents = to_vector<std::int64_t, std::int64_t>(parents);
  tree.depths = to_vector<std::int64_t, std::int64_t>(depths);
  for (const std::int64_t bits : to_vector<std::int64_t, std::int64_t>(mask)) {
    tree.ancestors.push_back(static_cast<std::uint64_t>(bits));
  }
  tree.pool_index = to_vector<std::int64_t, std::int64_t>(pool_index);
  // Drops unused positions.
  while (!tree.pool_index.empty() && tree.pool_index.back() < 0) {
    tree.tokens.pop_back();
    tree.parents.pop_back();
    tree.depths.pop_back();
    tree.ancestors.pop_back();
    tree.pool_index.pop_back();
  }
  return tree;
}

}  // namespace lamplighter::reference

#include "decode/draft_record.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>

#include <cstddef>
#include <cstdint>
#include <set>
#include <variant>

#include "kernels/ops.h"

namespace lamplighter {
namespace {

constexpr std::int64_t kParent = 0, kToken = 1, kTarget = 2, kDraft = 3;  // columns

// The probabilities fp32 [I, N] of tokens [I, N], each in its row [I, N] of the distributions.
at::Tensor probabilities_at(const ops::Distributions& distributions, const at::Tensor& rows,
                            const at::Tensor& tokens) {
  const at::Tensor all = ops::probabilities(distributions);
  return all.flatten(1).gather(1, rows.clamp_min(0) * all.size(2) + tokens.clamp_min(0));
}

// A token that was not sampled is drafted with probability 1.
at::Tensor draft_probabilities(const Draft& draft, const at::Tensor& parents, bool sampled) {
  const ops::Distributions& from = draft.distributions;
  at::Tensor certain = at::ones_like(parents, at::dtype(at::kFloat));
  if (!sampled || !from.defined() || from.values.size(1) == 0) return certain;
  const at::Tensor rows = draft.nodes.draft_rows.expand_as(parents).gather(1, parents.clamp_min(0));
  return at::where(rows >= 0, probabilities_at(from, rows, draft.tokens), certain);
}

}  // namespace

at::Tensor record_draft(const Draft& draft, const Verified& verified, bool sampled) {
  if (!std::holds_alternative<TreeDraft>(draft.kind)) return {};
  const at::Tensor parents = draft.nodes.parents.expand_as(draft.tokens);
  const at::Tensor none = (parents < 0).logical_or(draft.tokens < 0);
  const at::Tensor target = probabilities_at(verified.target, parents, draft.tokens);
  const at::Tensor drafted = draft_probabilities(draft, parents, sampled);
  return at::stack(
      {parents.to(at::kDouble), draft.tokens.to(at::kDouble), target.masked_fill(none, 0).to(at::kDouble),
       drafted.masked_fill(none, 0).to(at::kDouble)},
      2);
}

std::vector<DraftedNode> drafted_nodes(const at::Tensor& record) {
  std::vector<DraftedNode> nodes;
  for (std::int64_t node = 0; node < record.size(0); ++node) {
    const double* row = record.const_data_ptr<double>() + node * record.size(1);
    nodes.push_back({static_cast<std::int64_t>(row[kParent]), static_cast<std::int64_t>(row[kToken]),
                     static_cast<float>(row[kTarget]), static_cast<float>(row[kDraft])});
  }
  return nodes;
}

DraftedTree drafted_tree(const ImageReport& image, Walk walk) {
  DraftedTree tree;
  for (const DraftedNode& node : image.nodes) {
    tree.parents.push_back(node.parent);
    tree.tokens.push_back(node.token);
  }
  tree.tokens.front() = image.last_token;
  const auto accepted = static_cast<std::size_t>(image.accepted);
  for (std::size_t depth = 0; depth <= accepted; ++depth) {
    tree.accepted_node = image.path[depth];
    const std::int64_t next = depth < accepted ? image.path[depth + 1] : -1;
    std::set<std::int64_t> seen{-1};  // a token counts once among siblings, and padding never
    for (std::size_t child = 0; child < image.nodes.size(); ++child) {
      const DraftedNode& node = image.nodes[child];
      if (node.parent != tree.accepted_node) continue;
      const bool is_new = seen.insert(node.token).second;
      if (static_cast<std::int64_t>(child) != next) {
        if (is_new) tree.refused.push_back({static_cast<std::int64_t>(child), node.target, node.draft});
      } else if (walk == Walk::nodes) {
        break;  // its later siblings were not verified
      }
    }
  }
  return tree;
}

}  // namespace lamplighter

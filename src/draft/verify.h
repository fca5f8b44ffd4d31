#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "draft/draft.h"
#include "draft/run_state.h"
#include "kernels/ops.h"

// What the target says of a draft, and what verification makes of it.
namespace lamplighter {

// The target's pass over a draft. R = N nodes, and the row ends behind some of them.
struct Scores {
  at::Tensor hidden;    // [S, N, H]: what follows each node
  at::Tensor features;  // [S, R, F]
  // int64 [I, N]: the row of the pass whose logits say what follows a node, its own or its row end's. Absent:
  // its own for all nodes.
  std::optional<at::Tensor> logits_row = {};
};

// The rows of a target pass whose cache slots stay: the accepted path, and the row end behind its last node.
struct KeptRows {
  at::Tensor rows;   // int64 [I, W], W = D + 1, or D + 2 where image rows end with a token; padded with -1
  at::Tensor count;  // int64 [I], rows after the first, which is node 0
  at::Tensor added;  // int64 [I], the rows among them that Counters::lengths counts: no recomputed tokens
};

struct Verified {
  ops::Verified walk;         // the accepted path, its length and the token that follows it
  ops::Distributions target;  // [I, N, V]: what follows each node, guided and filtered
  // int64 [I, M], [1 or I, M]: the nodes that the path leads through: the nodes of a tree draft or, in
  // row-parallel decoding, the committed tokens as a chain; -1: padding.
  at::Tensor tokens, depths;
  KeptRows kept;
  // int64 [I, rows], for ParallelWindows alone: accepted drafts; -1: the row is not open.
  at::Tensor accepted = {};
};

KeptRows kept_rows(const ops::Verified& walk, const std::optional<at::Tensor>& logits_row);

// Walks a tree of at most this depth under the rule and samples the token that follows the accepted path.
Verified verify_tree(const RunState& run, const Draft& tree, const Scores& scores, ops::Distributions target,
                     std::int64_t depth, const ops::VerifyOptions& rule);

// What a cycle commits.
ops::CommittedTree committed_tree(const Verified& verified);

}  // namespace lamplighter

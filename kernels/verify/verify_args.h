#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "acceptance/rules.h"
#include "kernels/common/exported.h"
#include "kernels/sampling/distribution_args.h"

namespace lamplighter {
namespace ops {

// One cycle's tree, N nodes, node 0 the root, parents[n] < n; tokens are ids of the head's V outputs.
struct ScoredTree {
  Distributions target;   // [I, N, V]: after each node; a row of zeros is bad
  Distributions draft;    // [I, E, V]: that children were sampled from; E may be 0; undefined: none
  at::Tensor tokens;      // int64 [I, N]; < 0: padding, never accepted
  at::Tensor parents;     // int64 [1 or I, N]
  at::Tensor draft_rows;  // int64 [1 or I, N]: row of `draft` that n's children were sampled from; -1 none
  at::Tensor uniforms;    // fp32 [I, >= N] of [0, 1): entry n verifies node n, entry 0 samples the last token
  at::Tensor temperature;  // fp32 [I]; <= 0: greedy on the rows given, which are then to be unfiltered
  std::int64_t depth = 0;  // D, depth of the deepest node; the root has 0
};

// How verify_tree verifies: meanings in kernels/verify/verify.h.
struct VerifyOptions {
  Rule rule = Rule::exact;
  Residual residual = Residual::paper;
  bool sampled = true;              // children sampled without replacement; false: the most probable ones
  at::Tensor neighbours;            // int32 [codes, K], nearest first; undefined or empty: none
  RuleNumbers numbers;              // of the rule
  std::int64_t k = 0;               // neighbours looked at, at most K of them
  std::int64_t first_image_id = 0;  // id of code 0
  at::Tensor syntax_ids;            // int64 [any]: ids that official-lumina-* always accept; or undefined
  at::Tensor codebook;              // fp32 [codes, width]: what grouped measures distances with; or undefined
};

struct Verified {
  at::Tensor path;    // int64 [I, D + 1]: accepted nodes, the root first, then -1
  at::Tensor count;   // int64 [I]: accepted nodes but the root
  at::Tensor token;   // int64 [I]: the last token; -1 where its row is bad
  at::Tensor final;   // fp32 [I, V]: the distribution it comes from
  at::Tensor status;  // int64 [I]: 1 bad target row, 2 bad draft row
};

LAMPLIGHTER_EXPORTED Verified verify_tree(const ScoredTree& tree, const VerifyOptions& options);

}  // namespace ops

struct VerifyArgs;

// Arguments checked and turned into what kernels take.
LAMPLIGHTER_EXPORTED VerifyArgs verify_args(const ops::ScoredTree& tree, const ops::VerifyOptions& options);
// Room for the results, the addresses of which it sets.
LAMPLIGHTER_EXPORTED ops::Verified verify_results(VerifyArgs& args, const ops::ScoredTree& tree);

}  // namespace lamplighter

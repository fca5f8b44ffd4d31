#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <tuple>

#include "kernels/common/exported.h"

namespace lamplighter {
namespace ops {

// Nodes of a tree as rows of a pass: codes int64 [I, R], < 0: padding; depths int64 [1 or I, 1 or R];
// position int64 [S] -> ids max(codes, 0) + first_id and positions min(position + depths, last_position),
// int64 [S, R].
LAMPLIGHTER_EXPORTED std::tuple<at::Tensor, at::Tensor> tree_rows(const at::Tensor& codes,
                                                                  const at::Tensor& depths,
                                                                  const at::Tensor& position,
                                                                  std::int64_t first_id,
                                                                  std::int64_t last_position);

// What a cycle accepted. N nodes; D = greatest depth of a tree that the run has.
struct CommittedTree {
  at::Tensor tokens;      // int64 [I, N], codes; < 0: padding; of a root alone, a view of Counters::root
  at::Tensor depths;      // int64 [1 or I, N]
  at::Tensor path;        // int64 [I, <= D + 1], accepted nodes, the root first, then -1
  at::Tensor count;       // int64 [I], accepted nodes but the root
  at::Tensor token;       // int64 [I], the bonus token; -1 where the logits were no distribution
  at::Tensor status;      // int64 [I], of Verified: why a walk ended early
  at::Tensor kept_rows;   // int64 [I, W], rows of the pass that stay, the root first, then -1
  at::Tensor kept_count;  // int64 [I]: count, or count + 1 where a row end follows the last accepted node
};

// How far the images of a run are: constants, then what commit_tokens advances.
struct Counters {
  std::int64_t total = 0;           // codes per image
  std::int64_t last_position = 0;   // of the last token of an image
  std::int64_t first_image_id = 0;  // vocabulary id of code 0
  std::int64_t row_end = -1;        // vocabulary id of the token that ends a row of codes
  at::Tensor image;                 // int64 [I], its number in the run; -1: an empty slot; not advanced
  at::Tensor steps;                 // int64 [I], codes committed: the counter of the next samples
  at::Tensor codes;                 // int64 [I, total + D + 1], codebook indices; valid up to steps
  at::Tensor root;                  // int64 [I], the last of them
  at::Tensor bad;                   // bool [I], a row of logits was no distribution
  at::Tensor lengths;               // int64 [S], committed rows of the cache
  at::Tensor position;              // int64 [S], of the root
  at::Tensor report;                // int64 [I, report::width(D)] (kernels/commit/commit.h): the last cycle
  at::Tensor root_ids = {};  // int64 [S, 1], the root as tree_rows gives it for the next pass; or undefined
  at::Tensor root_positions = {};  // int64 [S, 1]
};

// Appends the accepted tokens and advances the counters, in place; kernels/commit/commit.h.
LAMPLIGHTER_EXPORTED void commit_tokens(const CommittedTree& tree, Counters& state);

}  // namespace ops

struct TreeRowsArgs;
struct CommitArgs;

// Arguments checked and turned into what kernels take, without the addresses of results.
LAMPLIGHTER_EXPORTED TreeRowsArgs tree_rows_args(const at::Tensor& codes, const at::Tensor& depths,
                                                 const at::Tensor& position, std::int64_t first_id,
                                                 std::int64_t last_position);
LAMPLIGHTER_EXPORTED CommitArgs commit_args(const ops::CommittedTree& tree, ops::Counters& state);

}  // namespace lamplighter

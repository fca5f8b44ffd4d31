#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "kernels/ops.h"
#include "tree/tree.h"

// What a cycle drafts. N = nodes of a draft, which one target pass scores. Node 0 of a tree, its root, is the
// last committed token, which the target has not seen yet. D = greatest depth of a node.
namespace lamplighter {

// Which nodes a draft has. First size 1: the same for all images.
struct Topology {
  at::Tensor parents;  // int64 [1 or I, N], of the root -1; undefined in row-parallel drafts
  at::Tensor
      draft_rows;     // int64 [1 or I, N], row of the distributions that n's children were sampled from; -1
  at::Tensor depths;  // int64 [1 or I, N]: positions after the last token
  at::Tensor mask;    // int64 [1 or I, N, words], bits as `attend` takes them; empty for a root alone
};
Topology topology(const Tree& tree, const c10::Device& device);
// The first `count` nodes of a chain, 2 or more: the last of them has no child.
Topology first_nodes(const Topology& nodes, std::int64_t count);
// int64 [count] on a device.
at::Tensor integers(const std::vector<std::int64_t>& values, const c10::Device& device);
// Bools [.., 64 * words] as the bits of int64 [.., words].
at::Tensor to_bits(const at::Tensor& bools);

// The largest drafts of a method, and the cache slots that it needs.
struct TreeShape {
  std::int64_t nodes = 1;           // N, with the root
  std::int64_t depth = 0;           // D
  std::int64_t widest = 1;          // nodes of one depth
  std::int64_t zero_rows = 0;       // cache slots of zeros behind the prompt
  std::int64_t recompute_rows = 0;  // tokens of the image that run twice: both passes keep a cache slot
  bool chain = false;               // every draft is one: its accepted nodes lie side by side
};

TreeShape shape_of(const Tree& tree);

// A tree below the last token, which the acceptance rule verifies.
struct TreeDraft {};

// Row-parallel decoding without drafts (rows/zipar.h): the nodes are the newest codes of image rows.
struct ParallelPositions {
  at::Tensor sampled;  // int64 [I], 1 or more: a token is sampled behind each of the first nodes
};

// Row-parallel decoding with a window of drafts for each image row (rows/row_parallel_jacobi.h). Nodes
// r * nodes .. are the chain of the r-th row: its newest code, then its drafts. One node more may follow the
// chains, a code that is recomputed: its row stays in the cache and no token is sampled behind it.
struct ParallelWindows {
  std::int64_t rows = 0, nodes = 0;            // chains, and nodes of each
  std::int64_t most_rows = 0, most_nodes = 0;  // in any cycle: random numbers are counted by these
  // int64 [I, rows]: how many drafts a row may accept at most, or with `above` how many more than the row
  // above it accepts; negative: none, the row is not open. Accepted drafts beyond the limit stay drafts.
  at::Tensor limits;
  bool above = false;
};

// Nodes whose first layers of the target have run: their cache slots in these layers are written.
struct PartialForward {
  at::Tensor residual;  // [S, N, H], behind the first layers
  std::int64_t first_layers = 0;
};

struct Draft {
  Topology nodes;
  at::Tensor tokens;                      // int64 [I, N], codes; -1: padding
  ops::Distributions distributions = {};  // [I, E, V], that children were sampled from; undefined: from none
  std::variant<TreeDraft, ParallelPositions, ParallelWindows> kind = {};
  // int64 [2, S], as `attend` takes them: the cache slots that all nodes see, where the mask says what they
  // see of the others, and where the nodes' own slots begin. Absent: both are the committed slots.
  std::optional<at::Tensor> lengths = {};
  std::optional<PartialForward> partial = {};
  // int64 [S, N]: the rows of the target's pass, where image rows have no end token. Undefined: they are made
  // from the tokens.
  at::Tensor ids = {}, positions = {};
};

}  // namespace lamplighter

#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "bundle/modules/drafter.h"
#include "bundle/modules/target.h"
#include "kernels/ops.h"
#include "lamplighter/options.h"
#include "tree/tree.h"

// The types that cross the seam between the decode loop and what drafts for it. I = images, S = sequences: I,
// or 2 I interleaved pairs (conditional, then unconditional row of each image) when any image is guided. N =
// nodes of a tree, node 0 = its root: the last committed token, which the target has not seen yet. D =
// greatest depth of a node. V = codes that the head can give.
namespace lamplighter {

// The models of a run.
struct Models {
  const Target* target = nullptr;
  const Drafter* drafter = nullptr;  // that the method names; null: it names none

  // A pass of the target that gives the features which the drafter reads.
  Target::Output run(const at::Tensor& x, const at::Tensor& positions, const at::Tensor& tree_mask,
                     const at::Tensor& lengths, const at::Tensor& cache) const;
};

// Embedded prompts, valid rows first.
struct Prompts {
  at::Tensor rows;   // [S, T, H]
  at::Tensor valid;  // int64 [S] on the CPU: rows that belong to the prompt, 1 .. T
  at::Tensor ids;    // int64 [S, T], of prompts that are tokens; undefined: of others
  // [S, T, E], embedded by a drafter that is a model, unless prompts are tokens; undefined: none is.
  at::Tensor drafter_rows = {};
  // For drafters that read the padding in front of captions: the rows after the valid ones are its rows 0, 1,
  // .. and T is the bundle's prompt length. The target is run over them behind the prompt, where a row sees
  // the whole prompt and the padding before it, as in the published program; its own rows do not see them.
  bool padded = false;

  std::int64_t longest() const { return padded ? rows.size(1) : valid.max().item<std::int64_t>(); }
};

// What the target's pass over the prompts gave.
struct Prefilled {
  at::Tensor features;   // [S, T, F], what drafters read
  at::Tensor positions;  // int64 [S, T], of the rows
};

// How logits become the distribution that tokens are drawn from, one entry per image.
struct Filter {
  at::Tensor temperature;  // fp32 [I]
  at::Tensor top_k;        // int64 [I]
  at::Tensor top_p;        // fp32 [I]
};

// A run of images side by side.
struct RunShape {
  const Grid* grid = nullptr;
  std::int64_t images = 1;       // slots for them
  std::int64_t prompt_rows = 0;  // most that a prompt has, Prompts::longest()
  bool guided = false;           // sequences are pairs
  bool varying = false;          // tokens of an image may differ in the scale of guidance
  bool graph = true;             // on CUDA, cycles are captured and replayed
  NoteCallback note = {};        // told when they cannot be

  std::int64_t sequences() const { return guided ? 2 * images : images; }
};

// How far a run is, and how its images are drawn. Tensors lie on the target's device and keep their addresses
// from cycle to cycle: what changes is written in place, so that a cycle can be captured once and replayed.
struct RunState : ops::Counters {
  // The target's, [layers, 2, S, kv_heads, slots, head_dim]. Rows behind the committed ones are free between
  // passes.
  at::Tensor cache;
  at::Tensor seeds;            // int64 [I]
  at::Tensor guidance;         // fp32 [I, T], scale of token t, or [I, 1]: of all
  at::Tensor temperature;      // fp32 [I], <= 0: most probable tokens
  Filter target_filter;        // of rows that are judged
  Filter draft_filter;         // of rows that children are drawn from
  std::string sampling_order;  // of the filters, as the manifest says it
  bool guided = false;         // sequences are pairs
  std::int64_t columns = 0;    // codes before every row end; 0: rows have none
  // Cycles have the same shapes and ask nothing of the device, as capture needs. Otherwise rows that hold
  // nothing are left out where asking for their number is cheaper than they are: on the CPU.
  bool fixed_shapes = false;

  std::int64_t images() const { return seeds.size(0); }
};

// Which nodes a tree has. First size 1: the same for all images.
struct Topology {
  at::Tensor parents;     // int64 [1 or I, N], of the root -1
  at::Tensor draft_rows;  // int64 [1 or I, N], row of the distributions that n's children were drawn from; -1
  at::Tensor depths;      // int64 [1 or I, N]
  at::Tensor mask;        // int64 [1 or I, N, 1] bits of ancestors; empty for a root alone
};
Topology topology(const Tree& tree, const c10::Device& device);
// The first `count` nodes of a chain, 2 or more: the last of them has no child.
Topology first_nodes(const Topology& nodes, std::int64_t count);
// int64 [count] on a device.
at::Tensor integers(const std::vector<std::int64_t>& values, const c10::Device& device);
// Bools [.., 64 * words] as the bits of int64 [.., words].
at::Tensor to_bits(const at::Tensor& bools);

// The most that the trees of a method have, and what it asks of the target's cache.
struct TreeShape {
  std::int64_t nodes = 1;   // N, with the root
  std::int64_t depth = 0;   // D
  std::int64_t widest = 1;  // nodes of one depth
  std::int64_t blank = 0;   // rows of zeros behind the prompt
  std::int64_t again = 0;   // rows of the picture that are run, and kept, once more
};

TreeShape shape_of(const Tree& tree);

// Windows of drafts in rows of a picture that go on side by side. Nodes r * nodes .. are the chain of the
// r-th of them: the row's newest code, then its drafts. Behind the chains may stand one node that is run and
// kept, and that nothing is asked of.
struct OpenWindows {
  std::int64_t rows = 0;   // chains; 0: the draft is something else
  std::int64_t nodes = 0;  // of a chain
  // The most that the method has of both: draws are numbered by them.
  std::int64_t most_rows = 0, most_nodes = 0;
};

// A drafted tree, or rows of a picture that go on side by side.
struct Draft : Topology {
  at::Tensor tokens;                      // int64 [I, N], codes; -1: nothing was left to draw
  ops::Distributions distributions = {};  // [I, E, V], that children were drawn from; undefined: from none
  // int64 [2, S], as `attend` takes them: how much of the cache all nodes see, what they see of the rest is
  // in the mask; and where their rows go. Undefined: both are the committed rows.
  at::Tensor lengths = {};
  // int64 [I], 1 or more: the first so many nodes hold codes of the picture, at `depths` from its newest one,
  // and what follows each is drawn. Parents and draft rows are undefined then. Undefined: a tree to be
  // judged.
  at::Tensor open = {};
  // Of windows, whose first so many chains are judged, each as a tree of its own.
  OpenWindows windows = {};
  // Of windows, int64 [I, rows], 0 or more: how many drafts each may accept at most or, with `above`, how
  // many more than the row above it does. What the rule accepts of more stays drafted.
  at::Tensor limits = {};
  bool above = false;
  // The nodes' rows behind the first layers of the target, which have run already and have their rows in the
  // cache; undefined: none have.
  struct {
    at::Tensor rows;          // [S, N, H]
    std::int64_t layers = 0;  // how many
  } begun = {};
};

// What the target says of a tree. R = N nodes, and the row ends behind some of them.
struct Scores {
  at::Tensor hidden;    // [S, N, H]: what follows each node
  at::Tensor features;  // [S, R, F]
  // int64 [I, N]: the row of the pass whose logits decide what follows a node, its row end's or its own;
  // undefined: its own for all.
  at::Tensor deciding;
};

// The rows of a target pass that stay: the accepted path, and the row end behind its last node.
struct KeptRows {
  at::Tensor rows;   // int64 [I, D + 1], or [I, D + 2] where rows end; the root first, then -1
  at::Tensor count;  // int64 [I], rows after the root
};

// What the rule makes of a tree: the accepted path int64 [I, D + 1], the number of accepted nodes [I], one
// token more [I]; and what it judged by.
struct Judged : ops::Judged {
  ops::Distributions target;  // [I, N, V]: what follows each node, guided and filtered
  // int64 [I, N], of a draft with open rows: what was drawn, as a chain behind a root; -1: nothing.
  at::Tensor chain = {};
  // Of windows: accepted drafts of every chain int64 [I, rows], -1: it is none of the open ones; and what
  // stays.
  at::Tensor accepted = {};
  KeptRows kept = {};
};

// One value per image as one per sequence.
at::Tensor per_sequence(const at::Tensor& per_image, bool guided);
// Rows `index` int64 [S, W] of rows [S, R, F].
at::Tensor rows_at(const at::Tensor& rows, const at::Tensor& index);
// Rows `index` int64 [I, W] of distributions.
ops::Distributions rows_at(const ops::Distributions& rows, const at::Tensor& index);
// How R rows at `depths` int64 [1 or I, 1 or R] below the root are guided and filtered.
ops::Filtering filtering(const RunState& run, const Filter& filter, const at::Tensor& depths,
                         std::int64_t rows);
// Distributions [I, R, V] of logits [S, R, V]; depths as above.
ops::Distributions distributions(const RunState& run, const Filter& filter, const at::Tensor& logits,
                                 const at::Tensor& depths);

}  // namespace lamplighter

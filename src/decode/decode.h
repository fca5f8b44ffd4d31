#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "bundle/drafter.h"
#include "bundle/target.h"
#include "decode/method.h"
#include "decode/report.h"
#include "kernels/ops.h"
#include "lamplighter/options.h"

// From prompt rows to image tokens. I = images, S = sequences: I, or 2 I interleaved pairs (conditional, then
// unconditional row of each image) when any image is guided. N = nodes of a tree, node 0 = its root: the last
// committed token, which the target has not seen yet. D = greatest depth.
namespace lamplighter {

// Embedded prompts, valid rows first.
struct Prompts {
  at::Tensor rows;   // [S, T, H]
  at::Tensor valid;  // int64 [S] on the CPU: rows that belong to the prompt, 1 .. T
  at::Tensor ids;    // int64 [S, T], of prompts that are tokens; undefined: of others
  // For drafters that read the padding in front of captions: the rows after the valid ones are its rows 0, 1,
  // .. and T is the bundle's prompt length. The target is run over them behind the prompt, where a row sees
  // the whole prompt and the padding before it, as in the published program; its own rows do not see them.
  bool padded = false;

  std::int64_t longest() const { return padded ? rows.size(1) : valid.max().item<std::int64_t>(); }
};

// What to draw: one entry per image.
struct DecodeRequest {
  SamplingOptions sampling;
  std::uint64_t seed = 0;
};

// Images that are guided at all run as pairs.
bool is_guided(const std::vector<DecodeRequest>& requests);
// Whether guidance ends before the last token of any of them.
bool is_partly_guided(const std::vector<DecodeRequest>& requests);

// The models of a run.
struct Models {
  const Target* target = nullptr;
  const Drafter* drafter = nullptr;  // null when nothing is drafted
};

// How logits become the distribution that tokens are drawn from, one entry per image.
struct Filter {
  at::Tensor temperature;  // fp32 [I]
  at::Tensor top_k;        // int64 [I]
  at::Tensor top_p;        // fp32 [I]
};

// Everything a cycle reads and writes, ops::Progress included; tensors live on the target's device and keep
// their addresses from cycle to cycle: what changes is written in place, so that a cycle can be captured once
// and replayed.
struct DecodeState : ops::Progress {
  // fixed for an image
  at::Tensor seeds;        // int64 [I]
  at::Tensor guidance;     // fp32 [I]
  at::Tensor interval;     // int64 [I], number of guided tokens, or more than there are
  at::Tensor temperature;  // fp32 [I], <= 0: most probable tokens
  Filter target_filter;    // of rows that are judged
  Filter draft_filter;     // of rows that children are drawn from
  TreePlan plan;
  bool guided = false;         // sequences are pairs
  bool partly_guided = false;  // guidance ends before the last token for some image
  std::int64_t columns = 0;    // codes before every row end; 0: rows have none
  at::Tensor row_end_bits;     // int64 [1, E, W], see own_bits
  // Cycles have the same shapes and ask nothing of the device, as capture needs. Otherwise rows that hold
  // nothing are left out where asking for their number is cheaper than they are: on the CPU.
  bool fixed_shapes = false;
  // advanced by a cycle, like what commit_tokens advances
  at::Tensor cache;           // [layers, 2, S, kv_heads, slots, head_dim]
  at::Tensor fresh_features;  // [S, A, F], of the rows that the drafter has not seen yet
  at::Tensor draft_cache;     // of the drafter; its sequences are I with conditional drafting
  at::Tensor draft_lengths;   // int64 [Sd], committed rows of it

  std::int64_t images() const { return seeds.size(0); }
};

// A drafted tree. First size 1: the same for all images.
struct Draft {
  at::Tensor tokens;                       // int64 [I, N], codes; -1: nothing was left to draw
  at::Tensor parents, draft_rows, depths;  // int64 [1 or I, N]
  at::Tensor mask;                         // int64 [1 or I, N, 1] bits of ancestors; empty for a root alone
  ops::Distributions distributions;        // [I, E, V], that children were drawn from
};

// What the target says of a tree. R = N nodes, and the row ends behind some of them.
struct Verified {
  at::Tensor hidden;    // [S, N, H]: what follows each node
  at::Tensor features;  // [S, R, F]
  at::Tensor deciding;  // see PassRows
};

// What is kept of a tree.
struct Accepted {
  at::Tensor path;   // int64 [I, D + 1], nodes root first, then -1
  at::Tensor count;  // int64 [I], accepted nodes but the root
  at::Tensor token;  // int64 [I], the bonus token: a code, -1 where the logits were no distribution
};

// Images that wait to be drawn.
struct Images {
  Prompts prompts;
  std::vector<DecodeRequest> requests;
};

// A run of images side by side.
struct RunShape {
  const Grid* grid = nullptr;
  std::int64_t images = 1;       // slots for them
  std::int64_t prompt_rows = 0;  // most that a prompt has, Prompts::longest()
  bool guided = false;           // sequences are pairs
  bool partly_guided = false;    // guidance may end before the last token
  bool graph = true;             // on CUDA, cycles are captured and replayed
  NoteCallback note = {};        // told when they cannot be
};

// The parts of a cycle, in order of use.
// State for images that begin together.
DecodeState make_state(const Models& models, const Method& method, const Prompts& prompts,
                       const std::vector<DecodeRequest>& requests, const Grid& grid);
// That of a run whose slots are still empty.
DecodeState empty_state(const Models& models, const Method& method, const RunShape& shape);
// Images of a run with their prompts and first codes, in caches of their own.
DecodeState begin(const Models& models, const Method& method, const Images& images, const RunShape& shape);
// Runs the prompts through the target, and through the drafter all but their last rows; those are the roots
// of the first trees.
Verified prefill(const Models& models, const Method& method, const Prompts& prompts, DecodeState& state);
// Brings the drafter up to the root and grows a tree below it.
Draft draft(const Models& models, const Method& method, DecodeState& state);
// Positions int64 [S, T] of the rows of the prompts, T = longest(); padding has the last row's.
at::Tensor prompt_positions(const Target& target, const Prompts& prompts);
// Runs a tree through the target in one pass.
Verified verify(const Models& models, DecodeState& state, const Draft& tree);
// Walks the tree under the rule and draws one token more from the guided, filtered distribution.
Accepted accept(const Models& models, const Method& method, const DecodeState& state, const Draft& tree,
                const Verified& verified);
// Keeps the accepted rows of the caches and of the features, appends the tokens, and leaves in state.report
// what the host wants to know of the cycle.
void commit(DecodeState& state, const Draft& tree, const Verified& verified, const Accepted& accepted);

// The tree of the root alone.
Draft root_alone(const DecodeState& state);
// One value per image as one per sequence.
at::Tensor per_sequence(const at::Tensor& per_image, bool guided);
// Rows `index` int64 [S, W] of rows [S, R, F].
at::Tensor rows_at(const at::Tensor& rows, const at::Tensor& index);
// The guidance scale fp32 [I], or [I, R] where it ends before the last token, of rows at `depths` int64
// [1 or I, 1 or R] below the root.
at::Tensor row_guidance(const DecodeState& state, const at::Tensor& depths, std::int64_t rows);
// Distributions [I, R, V] of logits [S, R, V]; depths as above.
ops::Distributions distributions(const Models& models, const DecodeState& state, const Filter& filter,
                                 const at::Tensor& logits, const at::Tensor& depths);

// As many as are asked for, in the order of their numbers 0, 1, ..., or fewer: then none waits any more.
using NextImages = std::function<Images(std::int64_t most)>;
// Called after every cycle; false stops the run with Error(ExitCode::interrupted).
using OnCycle = std::function<bool(const Report&)>;

// Draws images side by side; when one is complete, the next takes its slot. Throws Error(ExitCode::bundle)
// when the target gives no distribution.
void decode(const Models& models, const Method& method, const RunShape& shape, const NextImages& next,
            const OnCycle& on_cycle);

// The same for images that begin together: codebook indices int64 [I, rows * columns] on the CPU, raster
// order.
at::Tensor decode(const Models& models, const Method& method, const Prompts& prompts,
                  const std::vector<DecodeRequest>& requests, const Grid& grid, const OnCycle& on_cycle = {});

}  // namespace lamplighter

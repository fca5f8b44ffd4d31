#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "acceptance/rules.h"
#include "tree/window_fill.h"

// The operators of this library that the engine itself calls; shapes and meanings stand beside the kernels.
// I = images, S = sequences (I, or 2 I as interleaved conditional/unconditional pairs), R = rows, V =
// vocabulary.
#pragma GCC visibility push(default)
namespace lamplighter::ops {

// What a random number is for; part of the counter, so that draws for different purposes never coincide.
enum class Purpose : std::int64_t {
  token = 0,
  accept = 1,
  children = 2,
  window = 3,
  fill = 4,
  // of continuous tokens, src/continuous/draws.h
  order = 5,
  start = 6,
  noise = 7,
  proposal = 8,
  residual = 9
};

// seeds, steps int64 [I] -> fp32 [I, count] in [0, 1), multiples of 2^-24.
at::Tensor uniforms(const at::Tensor& seeds, const at::Tensor& steps, Purpose purpose, std::int64_t count);

// Rows of distributions over V tokens: logits with what guide_and_filter says of them, or probabilities.
struct Distributions {
  at::Tensor values;      // logits [S, R, V] fp32, bf16 or fp16; or probabilities fp32 [I, R, V]
  at::Tensor statistics;  // fp32 [I, R, 7], kernels/sampling/distribution.h; undefined: the values are
                          // probabilities

  Distributions() = default;
  Distributions(at::Tensor probabilities) : values(std::move(probabilities)) {}
  Distributions(at::Tensor logits, at::Tensor of_rows)
      : values(std::move(logits)), statistics(std::move(of_rows)) {}
  bool defined() const { return values.defined(); }
};

// What guide_and_filter does to logits; meanings in kernels/sampling/sampling.h.
struct Filtering {
  at::Tensor guidance;     // fp32 [I] or [I, R]
  at::Tensor temperature;  // fp32 [I]
  at::Tensor top_k;        // int64 [I]
  at::Tensor top_p;        // fp32 [I]
  std::string order;       // ar, eagle
};

// logits [S, R, V] -> distributions [I, R, V] that refer to them.
Distributions guide_and_filter(const at::Tensor& logits, const Filtering& filtering);

// That of every row's likeliest token: fp32 [I, R].
at::Tensor largest_probabilities(const Distributions& rows);

// Probabilities fp32 [I, R, V] written out; what they are already is returned as it is.
at::Tensor probabilities(const Distributions& rows);

// Rows one behind the other: all probabilities, or all logits of one kind.
Distributions cat(const std::vector<Distributions>& rows);

// rows [I, R, V], uniforms fp32 [I, R], temperature fp32 [I] -> tokens int64 [I, R].
at::Tensor draw(const Distributions& rows, const at::Tensor& uniforms, const at::Tensor& temperature);

// Children drawn of each row; meanings in kernels/trees/children.h.
struct Draws {
  at::Tensor seeds;  // int64 [I]
  at::Tensor steps;  // int64 [I]
  at::Tensor nodes;  // int64 [W], numbers of the rows
  std::int64_t count = 0;
  bool sampled = true;  // without replacement; false: the most probable tokens
};

// rows [I, W, V] -> tokens int64 [I, W, count] in the order drawn, -1 when no mass is left, and their
// conditional probabilities fp32 [I, W, count].
std::tuple<at::Tensor, at::Tensor> draw_children(const Distributions& rows, const Draws& draws);

// guide_and_filter, then draw_children of the rows: distributions, tokens, conditional probabilities.
std::tuple<Distributions, at::Tensor, at::Tensor> draft_children(const at::Tensor& logits,
                                                                 const Filtering& filtering,
                                                                 const Draws& draws);

// rows [I, W, V], scores fp32 [I, W] -> tokens int64 and scores fp32 of the candidates
// slot * k + rank [I, W * k], the k best candidates int64 [I, k].
std::tuple<at::Tensor, at::Tensor, at::Tensor> expand_dynamic(const Distributions& rows,
                                                              const at::Tensor& scores, std::int64_t k);

// tokens int64 and scores fp32 [I, P] of the pool, frontiers int64 [I, passes, k], P = k + passes * k * k
// -> tokens, parents, depths int64 [I, nodes + 1], mask int64 [I, nodes + 1, 1] and pool indices int64 [I,
// nodes] of the tree.
std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor> rerank_dynamic(
    const at::Tensor& tokens, const at::Tensor& scores, const at::Tensor& frontiers, std::int64_t nodes);

// cache [layers, 2, S, kv_heads, slots, head_dim], lengths int64 [S], path int64 [I, A], count int64 [I]:
// moves cache rows lengths[s] + path[i][j] -> lengths[s] + j for j = 1..count[i], in place.
void compact_cache(at::Tensor& cache, const at::Tensor& lengths, const at::Tensor& path,
                   const at::Tensor& count);

// Nodes of a tree as rows of a pass: codes int64 [I, R], < 0: padding; depths int64 [1 or I, 1 or R];
// position int64 [S] -> ids max(codes, 0) + first_id and positions min(position + depths, last_position),
// int64 [S, R].
std::tuple<at::Tensor, at::Tensor> tree_rows(const at::Tensor& codes, const at::Tensor& depths,
                                             const at::Tensor& position, std::int64_t first_id,
                                             std::int64_t last_position);

// What a cycle accepted. N nodes; D = greatest depth of a tree that the run has.
struct CommittedTree {
  at::Tensor tokens;      // int64 [I, N], codes; < 0: padding; of a root alone, a view of Counters::root
  at::Tensor depths;      // int64 [1 or I, N]
  at::Tensor path;        // int64 [I, <= D + 1], accepted nodes, the root first, then -1
  at::Tensor count;       // int64 [I], accepted nodes but the root
  at::Tensor token;       // int64 [I], the bonus token; -1 where the logits were no distribution
  at::Tensor status;      // int64 [I], of Judged: why a walk ended early
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
  at::Tensor steps;                 // int64 [I], codes committed: the counter of the next draws
  at::Tensor codes;                 // int64 [I, total + D + 1], codebook indices; valid up to steps
  at::Tensor root;                  // int64 [I], the last of them
  at::Tensor bad;                   // bool [I], a row of logits was no distribution
  at::Tensor lengths;               // int64 [S], committed rows of the cache
  at::Tensor position;              // int64 [S], of the root
  at::Tensor report;                // int64 [I, report::width(D)] (kernels/commit/commit.h): the last cycle
};

// Appends the accepted tokens and advances the counters, in place; kernels/commit/commit.h.
void commit_tokens(const CommittedTree& tree, Counters& state);

// What EAGLE's drafter has not seen yet: A rows, `count` of them valid. Sd = sequences of the drafter: S, or
// I, where it reads the first of each pair.
struct FreshRows {
  at::Tensor count;      // int64 [Sd]
  at::Tensor ids;        // int64 [Sd, A], the vocabulary id after each row
  at::Tensor positions;  // int64 [Sd, A]
  at::Tensor features;   // [Sd, A, F]
};
// Sets the fresh rows in place: those of a pass with features [S, R, F] that stay; kernels/commit/fresh.h.
// To be called before commit_tokens advances the counters.
void fresh_rows(const CommittedTree& tree, const at::Tensor& features, const Counters& state,
                FreshRows& fresh);

// One cycle's tree, N nodes, node 0 the root, parents[n] < n; tokens are ids of the head's V outputs.
struct ScoredTree {
  Distributions target;    // [I, N, V]: after each node; a row of zeros is bad
  Distributions draft;     // [I, E, V]: that children were drawn from; E may be 0; undefined: none
  at::Tensor tokens;       // int64 [I, N]; < 0: padding, never accepted
  at::Tensor parents;      // int64 [1 or I, N]
  at::Tensor draft_rows;   // int64 [1 or I, N]: row of `draft` that n's children were drawn from; -1 none
  at::Tensor uniforms;     // fp32 [I, >= N] of [0, 1): entry n judges node n, entry 0 draws the last token
  at::Tensor temperature;  // fp32 [I]; <= 0: greedy on the rows given, which are then to be unfiltered
  std::int64_t depth = 0;  // D, that of the deepest node; the root's is 0
};

// How judge_tree judges: meanings in kernels/judge/judge.h.
struct JudgeOptions {
  Rule rule = Rule::exact;
  Residual residual = Residual::paper;
  bool sampled = true;    // children drawn without replacement; false: the most probable ones
  at::Tensor neighbours;  // int32 [codes, K], nearest first; undefined or empty: none
  at::Tensor bounds;      // fp32 [B]: what the rule takes (JudgeArgs::bounds); undefined or empty: none
  std::int64_t k = 0;     // neighbours looked at, at most K of them
  std::int64_t first_image_id = 0;  // id of code 0
  at::Tensor syntax_ids;            // int64 [any]: ids that official-lumina-* always accept; or undefined
  at::Tensor codebook;              // fp32 [codes, width]: what grouped measures distances with; or undefined
};

struct Judged {
  at::Tensor path;    // int64 [I, D + 1]: accepted nodes, the root first, then -1
  at::Tensor count;   // int64 [I]: accepted nodes but the root
  at::Tensor token;   // int64 [I]: the last token; -1 where its row is bad
  at::Tensor final;   // fp32 [I, V]: the distribution it comes from
  at::Tensor status;  // int64 [I]: 1 bad target row, 2 bad draft row
};

Judged judge_tree(const ScoredTree& tree, const JudgeOptions& options);

// The chain `tree`, of which count int64 [I] nodes behind the root were accepted, as the window of the next
// cycle: tokens int64 [I, N - 1], -1 where no row says what stands there, and the probabilities fp32 [I, N -
// 1, V] that they have; kernels/window/window.h. tree.draft: probabilities; tree.uniforms [I, 2 N]. keep:
// drafts stay where they may.
std::tuple<at::Tensor, at::Tensor> renew_window(const ScoredTree& tree, const at::Tensor& count, bool keep);

// The next window as the published program of SJD-PAC has it; kernels/window/window.h. nodes int64 [I, L]:
// the node of `tree` that tells of each slot, or -1; draws fp32 [I, L, K] of [0, 1). Candidates int64 [I, L,
// K] in their order, -1 where there is none; the probabilities fp32 [I, L, V] that go with them, and those
// that they were drawn from. tree.draft: probabilities.
std::tuple<at::Tensor, at::Tensor, at::Tensor> renew_fan(const ScoredTree& tree, const at::Tensor& nodes,
                                                         const at::Tensor& draws);

// How new places of a window, L of them, are guessed; meanings in kernels/window/window.h.
struct Guesses {
  at::Tensor uniforms;       // fp32 [I, L]
  at::Tensor steps;          // int64 [I], codes committed
  at::Tensor left;           // int64 [I]
  at::Tensor drawn;          // int64 [I, C], the codes
  std::int64_t columns = 0;  // codes of a row of the picture
  std::int64_t codes = 0;    // ids of the V that are codes, the first ones
  WindowFill fill = WindowFill::uniform;
};
// tokens int64 [I, L], guesses in the place of those < 0; rows fp32 [I, L, V] become the guesses' there.
at::Tensor fill_window(const at::Tensor& tokens, at::Tensor& rows, const Guesses& guesses);

// Diagonal Gaussians of the target and of a draft: fp32 [N, C] each.
struct GaussianPair {
  at::Tensor target_mean, target_deviation, draft_mean, draft_deviation;
};

// Logarithm of the target's density at x fp32 [N, C] over the draft's: fp64 [N];
// kernels/continuous/continuous.h.
at::Tensor gaussian_log_ratio(const at::Tensor& x, const GaussianPair& pair);

// log_sigma fp64 [N], noise fp32 [N, R, C], uniforms fp64 [N, R] -> tokens fp32 [N, C] and tries int64 [N]:
// the first accepted of R proposals, counted from 1; 0 none, and the last one stays.
std::tuple<at::Tensor, at::Tensor> gaussian_residual(const GaussianPair& pair, const at::Tensor& log_sigma,
                                                     const at::Tensor& noise, const at::Tensor& uniforms);

}  // namespace lamplighter::ops
#pragma GCC visibility pop

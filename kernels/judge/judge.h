#pragma once

#include <cstddef>
#include <cstdint>

#include "acceptance/rules.h"
#include "kernels/common/isa.h"
#include "kernels/sampling/distribution.h"

namespace lamplighter {

// judge_tree: one cycle of speculative decoding for every image: walks its drafted tree under an acceptance
// rule and draws one more token. tests/reference/judge.h holds the same definition on the host in double
// precision.
//
// exact, lantern, lantern++, cool, lenient walk from the root. At node n with target row T the children are
// judged in order; g starts as T, e as the draft row. Child c with token x is accepted iff u[c] * d < Q,
// where
// - d = e(x) / sum(e) for sampled children (drawn one after another without replacement), 1 for deterministic
//   ones; children with e(x) = 0 or sum(e) <= 1e-6, repeated tokens and tokens outside the row are skipped;
// - Q = g(x) + the mass s of the longest prefix of the k nearest neighbours of x with s < limit; limit is
//   delta for lantern (arXiv 2410.03355, section 3.2), (lambda - 1) g(x) for lantern++ ("Enhancing Relaxed
//   Speculative Decoding with Static Tree Drafting for Visual Auto-regressive Models", section 4), and none
//   for exact. A limit <= 0 takes nothing: the decisions of exact, bit by bit.
// A rejection leaves g = norm((g_A - d)+), d being e / sum(e) or the indicator of x; residual paper: g_A is g
// with 0 on the neighbours taken; optimal: g itself. A residual below 1e-6 is rounding: g without the
// rejected tokens stands in, or T where that holds as little. Then e(x) = 0. The last token comes from g of
// the node where the walk ends, that is from T when nothing was rejected there.
//
// cool (Cool-SD, arXiv 2601.09212): Q = w g(x) with a weight w for each depth, and a rejection leaves g =
// norm((g - min(d, w g))+), the completion nearest to the target.
//
// lenient (Leviathan et al., "Fast Inference from Transformers via Speculative Decoding", 2023, appendix A.5,
// with the lenience l = 1 / w): exact with l d in the place of d, that is Q = w g(x), and a rejection leaves
// g = norm((w g - d)+).
//
// grouped ("Grouped Speculative Decoding for Autoregressive Image Generation", 2025): u[c] * D < Q with the
// masses Q of g and D of e / sum(e) in a group: x, and of the 7 tokens next below it in the order of g and
// the 6 next above those whose probability differs by less than gap from that of x and whose vectors lie
// within a squared distance. Fewer than 7 below: x alone; a token without a vector among them: no distances.
// A rejection leaves what exact leaves.
//
// typical (Medusa, arXiv 2401.10774, section 2.3.1): token x is right iff p > min(epsilon, alpha exp(-H)), p
// being T(x) and H = -sum T ln(T + 1e-5), at every node by itself: no uniforms, no draft rows. The longest
// chain of right nodes wins, then the most probable, then the first in depth-first order; the last token is
// drawn from T.
//
// official_pac (the published program of SJD-PAC): every child is tested as by exact, but whether the
// siblings before it were accepted or not: each leaves what its rejection would. The longest chain of
// accepted nodes wins, then the first in depth-first order. The last token comes from what all children of
// its end leave; an end without children that names a row of `draft` takes it from there, whatever T says,
// and from T else.
//
// The official residuals repeat LANTERN's published programs (sampling branches; static: sampled children,
// dynamic: deterministic ones, whatever `sampled` says): neighbours join while s <= limit, u * d <= Q
// accepts, uniforms 1, 2, ... are used in the order of the tests, and a rejection with a neighbour inside the
// limit strikes out all k + 1 nearest: in e for official-static, in g for the others. Without mass left: all
// ids. Lumina's programs judge ids that are no codes by the syntax of an image: Q is 1 for syntax_ids and 0
// for the others; without a neighbour table every id counts as a code.
//
// traversal (trees) and block (the chain of first children) judge whole paths and are exact: Weng et al.,
// "Traversal Verification for Speculative Tree Decoding" (2025); Sun et al., "Block Verification Accelerates
// Speculative Decoding" (2024). The residual is the paper's.
//
// Temperature <= 0: no uniforms. A child is right iff its token is the argmax of its parent's row (smallest
// among equals), for the lantern rules of g_A with Q at the token. The longest chain of right nodes wins,
// then the first in depth-first order; the last token is the argmax of T. Draft rows are not read.
//
// A row without mass or with a number that is not finite is bad. The walk ends there: bad target row: no
// token; bad draft row: its children are not judged and the token comes from T. Rows that the walk does not
// reach are not read.
struct JudgeArgs {
  DistributionRows target;    // [images, nodes, vocabulary]: row n is the distribution after node n
  DistributionRows draft;     // [images, E, vocabulary]
  const int64_t* tokens;      // [images, nodes]; the root's is not read
  const int64_t* parents;     // [1 or images, nodes], parents[n] < n; the root's is not read
  const int64_t* draft_rows;  // [1 or images, nodes]: the row of `draft` that n's children come from; -1 none
  const float* uniforms;      // [images, uniform_count] of [0, 1): 0 for the last token, n for node n
  const float* temperature;   // [images]
  const int32_t* neighbours;  // [codes, neighbour_count], nearest first, no code twice
  const int64_t* syntax_ids;  // [syntax_count]: ids outside the codes that Lumina's programs always accept
  // [bound_count]: delta, lambda or w (lenient: 1 / l) for children at depth 1, 2, ...; last: and deeper.
  // typical: epsilon, alpha grouped: gap, squared distance
  const float* bounds;
  const float* codebook;  // [code_rows, code_width]: vectors of the tokens from first_image_id on; null: none
  int64_t* path;          // out [images, depth + 1]: accepted nodes, root first, then -1
  int64_t* count;         // out [images]: accepted nodes but the root
  int64_t* token;         // out [images]: the last token; -1 where its row is bad
  float* final;           // out [images, vocabulary]: the distribution it comes from; zeros where bad
  int64_t* status;        // out [images]: kJudgeBadTarget, kJudgeBadDraft
  // [images, nodes], null where none are known: the child that each node accepts, judged by itself, else 0
  const int* verdicts;
  int64_t images;
  int64_t nodes;  // root included, at most kJudgeNodes
  int64_t vocabulary;
  int64_t parents_stride;     // per image; 0: one row for all
  int64_t draft_rows_stride;  // per image; 0: one row for all
  int64_t uniform_count;
  int64_t code_rows;
  int64_t code_width;
  int64_t codes;
  int64_t neighbour_count;
  int64_t bound_count;
  int64_t syntax_count;
  int64_t k;               // at most neighbour_count
  int64_t first_image_id;  // token of code 0
  int64_t depth;           // nodes below are not judged
  int64_t levels;          // rows of one kind that are in use at once: depth + 1 with paths, else 1
  Rule rule;
  bool paths;  // the rule judges whole paths, not one node after another
  Residual residual;
  bool sampled;
};

constexpr int64_t kJudgeNodes = 64;
constexpr int64_t kJudgeBadTarget = 1;
constexpr int64_t kJudgeBadDraft = 2;

// Floats of scratch for one image: rows that rejections leave, and rows of the target and of the draft that
// are in use where they are not given as probabilities.
inline size_t judge_residual_floats(const JudgeArgs& args) {
  return static_cast<size_t>(args.levels * args.vocabulary);
}

inline size_t judge_read_floats(const JudgeArgs& args) {
  const int64_t kinds =
      (args.target.statistics != nullptr ? 1 : 0) + (args.draft.statistics != nullptr ? 1 : 0);
  return static_cast<size_t>(kinds * args.levels * args.vocabulary);
}

inline size_t judge_scratch_floats(const JudgeArgs& args) {
  return judge_residual_floats(args) + judge_read_floats(args);
}

// CPU kernels over the images [begin, end); equal bits for all instruction sets. `scratch`: private to the
// calling thread.
template <Isa isa>
void judge_cpu(const JudgeArgs& args, int64_t begin, int64_t end, float* scratch);

// All images on `stream` (a cudaStream_t). `scratch`: judge_cuda_bytes() bytes.
size_t judge_cuda_bytes(const JudgeArgs& args);
void judge_cuda(const JudgeArgs& args, void* scratch, void* stream);

}  // namespace lamplighter

#pragma once

#include <cstddef>
#include <cstdint>

#include "acceptance/rules.h"
#include "kernels/common/isa.h"
#include "kernels/sampling/distribution.h"

namespace lamplighter {

// verify_tree: the verification of one cycle of speculative decoding, for every image. It walks the drafted
// tree under an acceptance rule and samples one more token. tests/reference/verify.h defines the same on the
// host in double precision.
//
// exact, lantern, lantern++, cool, lenient and grouped walk from the root. At node n with target row T the
// children are verified in order; g starts as T, e as the draft row. Child c with token x is accepted iff
// u[c] * d < Q, where
// - d = e(x) / sum(e) for children that were sampled without replacement, 1 for deterministic ones; children
//   with e(x) = 0 or sum(e) <= 1e-6, repeated tokens and tokens outside the row are skipped;
// - Q = g(x) + the mass s of the longest prefix of the k nearest neighbours of x with s < limit; limit is
//   delta for lantern (arXiv 2410.03355, section 3.2), (lambda - 1) g(x) for lantern++ ("Enhancing Relaxed
//   Speculative Decoding with Static Tree Drafting for Visual Auto-regressive Models", section 4), and none
//   for exact. A limit <= 0 takes nothing: it decides like exact, bit for bit.
// A rejection leaves g = norm((g_A - d)+), where d is e / sum(e) or the indicator of x. Residual paper: g_A
// is g with 0 on the neighbours taken; optimal: g itself. A residual with a mass below 1e-6 is rounding
// error: it is replaced by g without the rejected tokens, or by T where their mass is as small. Then e(x) =
// 0. The last token comes from g of the node where the walk ends, which is T when nothing was rejected there.
//
// cool (Cool-SD, arXiv 2601.09212): Q = w g(x) with a weight w for each depth, and a rejection leaves g =
// norm((g - min(d, w g))+), the completion nearest to the target.
//
// lenient (Leviathan et al., "Fast Inference from Transformers via Speculative Decoding", 2023, appendix A.5,
// with the lenience l = 1 / w): exact with l d instead of d. So Q = w g(x), and a rejection leaves g =
// norm((w g - d)+).
//
// grouped ("Grouped Speculative Decoding for Autoregressive Image Generation", 2025): u[c] * D < Q with the
// masses Q of g and D of e / sum(e) in a group. It holds x, and of the 7 tokens next below it in the order of
// g and the 6 next above, each token whose probability differs from x's by less than gap and whose vector
// lies within a squared distance. Fewer than 7 below: x alone; a token without a vector among them: no
// distances. A rejection leaves what exact leaves.
//
// typical (Medusa, arXiv 2401.10774, section 2.3.1): token x is accepted iff p > min(epsilon, alpha exp(-H)),
// where p is T(x) and H = -sum T ln(T + 1e-5), at every node by itself, without uniforms or draft rows. The
// longest chain of accepted nodes wins, then the most probable, then the first in depth-first order. The last
// token is sampled from T.
//
// official_pac (the official code of SJD-PAC): every child is tested as by exact, whether the siblings
// before it were accepted or not: each leaves what its rejection would leave. The longest chain of accepted
// nodes wins, then the first in depth-first order. The last token comes from what all children of its end
// leave. An end without children takes it from the row of `draft` that it names, or from T where it names
// none.
//
// The official residuals repeat LANTERN's official code (sampling branches; static: sampled children,
// dynamic: deterministic ones, whatever `sampled` says): neighbours join while s <= limit, u * d <= Q
// accepts, uniforms 1, 2, ... are used in the order of the tests, and a rejection with a neighbour inside the
// limit strikes out all k + 1 nearest: in e for official-static, in g for the others. Without mass left: all
// ids. Lumina's official code verifies ids that are no codes by the syntax of an image: Q is 1 for
// syntax_ids and 0 for the others; without a neighbour table every id counts as a code.
//
// traversal (trees) and block (the chain of first children) verify whole paths and are lossless: Weng et al.,
// "Traversal Verification for Speculative Tree Decoding" (2025); Sun et al., "Block Verification Accelerates
// Speculative Decoding" (2024). The residual is the paper's.
//
// Temperature <= 0: no uniforms. A child is accepted iff its token is the argmax of its parent's row
// (smallest among equals), for the lantern rules of g_A with Q at the token. The longest chain of accepted
// nodes wins, then the first in depth-first order; the last token is the argmax of T. Draft rows are not
// read.
//
// A row without mass or with a number that is not finite is bad. The walk ends there. Bad target row: no
// token; bad draft row: its children are not verified and the token comes from T. Rows that the walk does not
// reach are not read.
struct VerifyArgs {
  DistributionRows target;    // [images, nodes, vocabulary]: row n is the distribution after node n
  DistributionRows draft;     // [images, E, vocabulary]
  const int64_t* tokens;      // [images, nodes]; the root's is not read
  const int64_t* parents;     // [1 or images, nodes], parents[n] < n; the root's is not read
  const int64_t* draft_rows;  // [1 or images, nodes]: the row of `draft` that n's children come from; -1 none
  const float* uniforms;      // [images, uniform_count] of [0, 1): 0 for the last token, n for node n
  const float* temperature;   // [images]
  const int32_t* neighbours;  // [codes, neighbour_count], nearest first, no code twice
  const int64_t* syntax_ids;  // [syntax_count]: ids outside the codes that official-lumina-* always accept
  const float* codebook;  // [code_rows, code_width]: vectors of the tokens from first_image_id on; null: none
  int64_t* path;          // out [images, depth + 1]: accepted nodes, root first, then -1
  int64_t* count;         // out [images]: accepted nodes but the root
  int64_t* token;         // out [images]: the last token; -1 where its row is bad
  float* final;           // out [images, vocabulary]: the distribution it comes from; zeros where bad
  int64_t* status;        // out [images]: kVerifyBadTarget, kVerifyBadDraft
  // [images, nodes], null where none are known: the child that each node accepts, verified by itself, else 0
  const int* verdicts;
  int64_t images;
  int64_t nodes;  // root included, at most kVerifyNodes
  int64_t vocabulary;
  int64_t parents_stride;     // per image; 0: one row for all
  int64_t draft_rows_stride;  // per image; 0: one row for all
  int64_t uniform_count;
  int64_t code_rows;
  int64_t code_width;
  int64_t codes;
  int64_t neighbour_count;
  int64_t syntax_count;
  int64_t k;               // at most neighbour_count
  int64_t first_image_id;  // token of code 0
  int64_t depth;           // nodes below are not verified
  int64_t levels;          // rows of one kind that are in use at once: depth + 1 with paths, else 1
  Rule rule;
  Walk walk;  // of the rule
  RuleNumbers numbers;
  Residual residual;
  bool sampled;
};

constexpr int64_t kVerifyNodes = 64;
constexpr int64_t kVerifyBadTarget = 1;
constexpr int64_t kVerifyBadDraft = 2;

// Floats of scratch for one image: rows that rejections leave, and rows of the target and of the draft that
// are in use where they are not given as probabilities.
inline size_t verify_residual_floats(const VerifyArgs& args) {
  return static_cast<size_t>(args.levels * args.vocabulary);
}

inline size_t verify_read_floats(const VerifyArgs& args) {
  const int64_t kinds =
      (args.target.statistics != nullptr ? 1 : 0) + (args.draft.statistics != nullptr ? 1 : 0);
  return static_cast<size_t>(kinds * args.levels * args.vocabulary);
}

inline size_t verify_scratch_floats(const VerifyArgs& args) {
  return verify_residual_floats(args) + verify_read_floats(args);
}

// CPU kernels over the images [begin, end); equal bits for all instruction sets. `scratch`: private to the
// calling thread.
template <Isa isa>
void verify_cpu(const VerifyArgs& args, int64_t begin, int64_t end, float* scratch);

// All images on `stream` (a cudaStream_t). `scratch`: verify_cuda_bytes() bytes.
size_t verify_cuda_bytes(const VerifyArgs& args);
void verify_cuda(const VerifyArgs& args, void* scratch, void* stream);

}  // namespace lamplighter

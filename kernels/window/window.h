#pragma once

#include "kernels/verify/verify.h"
#include "tree/window_fill.h"

namespace lamplighter {

// The window of speculative Jacobi decoding (Teng et al. 2024, arXiv 2410.01699, section 4): drafts that
// outlive a cycle, L of them, and the distributions that they were sampled from.

// renew_window: what becomes of the window after a cycle. The nodes of `verify` are a chain, node n at depth
// n, of which the first count + 1 positions behind the root are committed: node n's row T is the distribution
// of position n + 1. Entry k = 1 .. L = nodes - 1 of the next window is position count + 1 + k, so its row is
// the row of node n = count + k:
// - with `keep`, the draft x of that position stays where u[n + 1] * D(x) < T(x), else a token of
//   norm((T - D)+) replaces it: a maximal coupling, so drafts change as seldom as they can (SCD);
// - without `keep`, and where there was no draft, the token is sampled from T.
// Either way its distribution is T, which becomes the D of the next cycle. Entries behind the last row, and
// entries whose T is bad, have token -1 and a row of zeros. Temperature <= 0: the most probable tokens.
struct RenewWindowArgs {
  VerifyArgs verify;     // exact; uniforms n < nodes test node n, nodes + n sample behind node n
  const int64_t* count;  // [images], accepted nodes but the root; -1: the root's position stays the last
  int64_t* tokens;       // out [images, L]
  float* rows;           // out [images, L, vocabulary]: probabilities
  bool keep;
};

// renew_fan: the same for a tree with several candidates at its first positions, as the official code of
// SJD-PAC does it (rule official_pac). nodes[k] is the node whose row T is the distribution of entry k of the
// next window, -1: none. Its first child stays where the uniform of its node accepts it; `left` is then what
// it leaves of T, else what all of the node's children leave, or T where it has none. The entry's
// other candidates, or all of them, are sampled from `left` one after another without replacement, with the
// entries of `samples`; -1 where no mass is left. T becomes the D of the next cycle, although they come from
// `left`. Temperature <= 0: the most probable tokens of T.
struct RenewFanArgs {
  VerifyArgs verify;     // official_pac; draft: probabilities
  const int64_t* nodes;  // [images, L]
  const float* samples;  // [images, L, count] of [0, 1)
  int64_t* candidates;   // out [images, L, count]
  float* rows;           // out [images, L, vocabulary]: probabilities, zeros for node -1 and bad rows
  float* left;           // out [images, L, vocabulary]: likewise
  int64_t length;        // L
  int64_t count;         // K
};

// fill_window: a guess for every entry with token < 0, and the distribution that it comes from; the others
// stay. Entries with a token come first. Entry k = 0, 1, .. is position steps + k of the image, which has
// `columns` codes a row; by `fill`:
//   uniform, random  the code floor(u * codes); its row: that distribution, exactly, or certainty
//   repeat, sample   the token to the left of the first guess, or the most probable one of its row; where no
//                    entry has a token, `left`. A random code at the left edge. Certain.
//   above            the code one row up; a random one where that is not committed. Certain.
struct FillWindowArgs {
  const int64_t* tokens;        // [images, L]
  const float* uniforms;        // [images, L]
  const int64_t* steps;         // [images], codes committed
  const int64_t* left;          // [images]
  const int64_t* codes_so_far;  // [images, sampled_columns], the codes
  int64_t* out;                 // out [images, L]
  float* rows;                  // [images, L, vocabulary], changed where a guess is made
  int64_t images;
  int64_t length;  // L
  int64_t vocabulary;
  int64_t codes_so_far_columns;
  int64_t columns;
  int64_t codes;  // at most vocabulary
  WindowFill fill;
};

// CPU kernels over the entries [begin, end) of all images. `scratch`: vocabulary floats, private to the
// calling thread.
template <Isa isa>
void renew_window_cpu(const RenewWindowArgs& args, int64_t begin, int64_t end, float* scratch);
template <Isa isa>
void renew_fan_cpu(const RenewFanArgs& args, int64_t begin, int64_t end, float* scratch);
template <Isa isa>
void fill_window_cpu(const FillWindowArgs& args, int64_t begin, int64_t end);

// All entries on `stream` (a cudaStream_t), a block each. `scratch`: vocabulary floats for each.
void renew_window_cuda(const RenewWindowArgs& args, float* scratch, void* stream);
void renew_fan_cuda(const RenewFanArgs& args, float* scratch, void* stream);
void fill_window_cuda(const FillWindowArgs& args, void* stream);

}  // namespace lamplighter

#pragma once

#include "kernels/judge/judge.h"
#include "tree/window_fill.h"

namespace lamplighter {

// The window of speculative Jacobi decoding (Teng et al. 2024, arXiv 2410.01699, section 4): drafts that
// outlive a cycle, L of them, and the distributions that they were drawn from.

// renew_window: what becomes of the window after a cycle. The nodes of `judge` are a chain, node n at depth
// n, of which the first count + 1 places behind the root are committed: node n's row T says what stands at
// place n + 1. Slot k = 1 .. L = nodes - 1 of the next window is place count + 1 + k, so its row is that of
// node n = count + k:
// - with `keep`, the draft x that stood there stays where u[n + 1] * D(x) < T(x), and a token of norm((T -
// D)+)
//   takes its place otherwise: a maximal coupling, so drafts change as seldom as they can (SCD);
// - else, and where no draft stood, the token is drawn from T.
// Either way it has the law T, whatever D was, and T becomes the D of the next cycle. Slots behind the last
// row have token -1 and a row of zeros, as those have whose T is bad. Temperature <= 0: the most probable
// tokens.
struct RenewWindowArgs {
  JudgeArgs judge;       // exact; uniforms n < nodes test node n, nodes + n draw behind node n
  const int64_t* count;  // [images], accepted nodes but the root; -1: the root's place stays the last
  int64_t* tokens;       // out [images, L]
  float* rows;           // out [images, L, vocabulary]: probabilities
  bool keep;
};

// renew_fan: the same for a tree with several candidates at its first places, as the published program of
// SJD-PAC does it (rule official_pac). nodes[k] is the node whose row T says what stands in slot k of the
// next window, -1: none does. Its first child stays where it is right by the uniform of its node; `left` is
// then what it leaves of T, and else what all of the node's children leave: T where it has none. The slot's
// other candidates, or all of them, are drawn from `left` one after another without replacement, entry 0, 1,
// .. of `draws` deciding; -1 where no mass is left. T becomes the D of the next cycle, although `left` is
// what they come from. Temperature <= 0: the most probable tokens of T.
struct RenewFanArgs {
  JudgeArgs judge;       // official_pac; draft: probabilities
  const int64_t* nodes;  // [images, slots]
  const float* draws;    // [images, slots, count] of [0, 1)
  int64_t* candidates;   // out [images, slots, count]
  float* rows;           // out [images, slots, vocabulary]: probabilities, zeros for node -1 and bad rows
  float* left;           // out [images, slots, vocabulary]: likewise
  int64_t slots;
  int64_t count;  // K
};

// fill_window: a guess for every slot with token < 0, and the distribution that it comes from; the others
// stay. Slots with a token come first. Slot k = 0, 1, .. is place steps + k of the picture, which has
// `columns` codes a row; by `fill`:
//   uniform, random  the code floor(u * codes); its row: that law, exactly, or certainty
//   repeat, sample   what stands to the left of the first guess: the slot's token, or the most probable one
//   of its
//                    row; where no slot has a token, `left`. A random code at the left edge. Certain.
//   above            the code one row up; a random one where that is not committed. Certain.
struct FillWindowArgs {
  const int64_t* tokens;  // [images, slots]
  const float* uniforms;  // [images, slots]
  const int64_t* steps;   // [images], codes committed
  const int64_t* left;    // [images]
  const int64_t* drawn;   // [images, drawn_columns], the codes
  int64_t* out;           // out [images, slots]
  float* rows;            // [images, slots, vocabulary], changed where a guess is made
  int64_t images;
  int64_t slots;
  int64_t vocabulary;
  int64_t drawn_columns;
  int64_t columns;
  int64_t codes;  // at most vocabulary
  WindowFill fill;
};

// CPU kernels over the slots [begin, end) of all images. `scratch`: vocabulary floats, private to the calling
// thread.
template <Isa isa>
void renew_window_cpu(const RenewWindowArgs& args, int64_t begin, int64_t end, float* scratch);
template <Isa isa>
void renew_fan_cpu(const RenewFanArgs& args, int64_t begin, int64_t end, float* scratch);
template <Isa isa>
void fill_window_cpu(const FillWindowArgs& args, int64_t begin, int64_t end);

// All slots on `stream` (a cudaStream_t), a block each. `scratch`: vocabulary floats for each.
void renew_window_cuda(const RenewWindowArgs& args, float* scratch, void* stream);
void renew_fan_cuda(const RenewFanArgs& args, float* scratch, void* stream);
void fill_window_cuda(const FillWindowArgs& args, void* stream);

}  // namespace lamplighter

#pragma once

#include <cstddef>
#include <cstdint>

#include "base/host_device.h"
#include "kernels/commit/commit.h"
#include "kernels/common/isa.h"
#include "kernels/sampling/sampling.h"
#include "kernels/window/window.h"

namespace lamplighter {

// What a row of a window says before it is known where the walk ends.
struct WindowVerdict {
  int64_t accepts;  // 1: the draft behind the row is accepted
  int64_t last;     // the token behind the row if the walk ends there; -1: the row is no distribution
  int64_t next;     // else the token behind it in the next window; -1: none
  int64_t guessed;  // 1: `next` is a guess that was not scored and stays
};

// window_step: what follows the target's pass in a cycle of speculative Jacobi decoding whose window is a
// chain of N nodes, the root first, under the rule `exact` with sampled drafts: guide_and_filter of all rows,
// verify_tree, renew_window, commit_tokens, fill_window, and tree_rows of the next pass. The numbers are
// the same.
//
// The distribution that a draft was sampled from stays where its row of logits was copied to: row n decides
// position steps + n, and its place is that position modulo N. So a row finds in its place the distribution
// that the draft of its position comes from, and leaves its own there. Guesses come from no row. A draft that
// was not scored (token -1 in the pass, in `window` not) keeps its token and its distribution.
struct WindowStepArgs {
  GuideAndFilterArgs filter;   // of N rows for each image; its statistics are memory for the kernels
  CommitArgs commit;           // path: memory for the kernels; without count, token, status and kept_*
  FillWindowArgs fill;         // without tokens, uniforms, rows and out; not WindowFill::sample
  const int64_t* seeds;        // [images]
  const float* temperature;    // [images]
  const int64_t* logits_rows;  // [images, N], as of ar_step; null: every node's own
  int64_t* path;               // [images, N], commit.path
  int64_t* kept_rows;          // out [images, N + 1]: rows of the pass that stay, then -1
  int64_t* kept_count;         // out [images]: those behind the root
  WindowVerdict* verdicts;     // [images, N], memory for the kernels
  // The window, in place.
  int64_t* window;            // [images, N]: the root, then the drafts; may be commit.tokens
  bool* guessed;              // [images, N]: which drafts are guesses
  void* logits;               // [sequences, N, vocabulary], by place
  RowStatistics* statistics;  // [images, N], by place
  double* masses;             // [images, N], by place: sums of the probabilities
  int64_t* ids;               // [sequences, N], rows of the next pass, as of tree_rows
  int64_t* positions;         // [sequences, N]
  uint32_t* finished;         // [images]: rows that are done, 0 between calls
  int64_t images;
  bool keep;  // drafts stay where they may
};

// Floats of scratch for one row.
LAMPLIGHTER_HOST_DEVICE inline size_t window_step_floats(int64_t vocabulary) {
  return 3 * static_cast<size_t>(vocabulary);
}

// CPU kernels over the images [begin, end). `scratch`: cells and window_step_floats(), private to the calling
// thread.
template <Isa isa>
void window_step_cpu(const WindowStepArgs& args, int64_t begin, int64_t end, void* scratch);

// All images on `stream` (a cudaStream_t) as one launch. `scratch`: window_step_cuda_bytes() bytes.
size_t window_step_cuda_bytes(const WindowStepArgs& args);
void window_step_cuda(const WindowStepArgs& args, float* scratch, void* stream);

}  // namespace lamplighter

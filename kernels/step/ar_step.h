#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/commit/commit.h"
#include "kernels/common/isa.h"
#include "kernels/sampling/sampling.h"

namespace lamplighter {

// ar_step: what follows the target's pass in a step of autoregressive decoding: guide_and_filter of the row
// of logits of every image, its next token, and commit_tokens of a tree of the root alone. The token is that
// of verify_tree: sampled with the uniform of its seed, step and purpose, node 0; with temperature <= 0 the
// most probable one. A row that is no distribution gives no token and makes the image bad.
struct ArStepArgs {
  GuideAndFilterArgs filter;   // of one row for each image; its statistics are memory for the kernels
  CommitArgs commit;           // without what the verification of a tree gives
  const int64_t* seeds;        // [images]
  const float* temperature;    // [images]
  const int64_t* logits_rows;  // [images]: the rows of the pass that the logits come from; 0: the root's,
                               // else the row end's behind it, which is committed, too; null: 0
  int64_t images;
  int64_t purpose;  // of the uniforms
};

// CPU kernels over the images [begin, end). `scratch`: sampling_scratch_bytes() bytes, private to the calling
// thread.
template <Isa isa>
void ar_step_cpu(const ArStepArgs& args, int64_t begin, int64_t end, void* scratch);

// All images on `stream` (a cudaStream_t) as one launch. `scratch`: ar_step_cuda_bytes() bytes.
size_t ar_step_cuda_bytes(const ArStepArgs& args);
void ar_step_cuda(const ArStepArgs& args, float* scratch, void* stream);

}  // namespace lamplighter

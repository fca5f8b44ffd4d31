#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <tuple>

#include "kernels/common/exported.h"
#include "kernels/verify/verify_args.h"
#include "tree/window_fill.h"

namespace lamplighter {
namespace ops {

// The chain `tree`, of which count int64 [I] nodes behind the root were accepted, as the window of the next
// cycle: tokens int64 [I, N - 1], -1 where no row has its distribution, and the probabilities fp32 [I, N -
// 1, V] that they have; kernels/window/window.h. tree.draft: probabilities; tree.uniforms [I, 2 N]. keep:
// drafts stay where they may.
LAMPLIGHTER_EXPORTED std::tuple<at::Tensor, at::Tensor> renew_window(const ScoredTree& tree,
                                                                     const at::Tensor& count, bool keep);

// The next window as the official code of SJD-PAC has it; kernels/window/window.h. nodes int64 [I, L]:
// the node of `tree` that has the distribution of each entry, or -1; samples fp32 [I, L, K] of [0, 1).
// Candidates int64 [I, L, K] in their order, -1 where there is none; the probabilities fp32 [I, L, V] that go
// with them, and those that they were sampled from. tree.draft: probabilities.
LAMPLIGHTER_EXPORTED std::tuple<at::Tensor, at::Tensor, at::Tensor> renew_fan(const ScoredTree& tree,
                                                                              const at::Tensor& nodes,
                                                                              const at::Tensor& samples);

// How new positions of a window, L of them, are guessed; meanings in kernels/window/window.h.
struct Guesses {
  at::Tensor uniforms;       // fp32 [I, L]
  at::Tensor steps;          // int64 [I], codes committed
  at::Tensor left;           // int64 [I]
  at::Tensor codes_so_far;   // int64 [I, C], the codes
  std::int64_t columns = 0;  // codes of a row of the image
  std::int64_t codes = 0;    // ids of the V that are codes, the first ones
  WindowFill fill = WindowFill::uniform;
};
// tokens int64 [I, L], with guesses in place of those < 0; rows fp32 [I, L, V] become the guesses' there.
LAMPLIGHTER_EXPORTED at::Tensor fill_window(const at::Tensor& tokens, at::Tensor& rows,
                                            const Guesses& guesses);

}  // namespace ops

struct RenewWindowArgs;
struct RenewFanArgs;
struct FillWindowArgs;

// Arguments checked and turned into what kernels take, without the addresses of results.
LAMPLIGHTER_EXPORTED RenewWindowArgs renew_window_args(const ops::ScoredTree& tree, const at::Tensor& count,
                                                       bool keep);
LAMPLIGHTER_EXPORTED RenewFanArgs renew_fan_args(const ops::ScoredTree& tree, const at::Tensor& nodes,
                                                 const at::Tensor& samples);
LAMPLIGHTER_EXPORTED FillWindowArgs fill_window_args(const at::Tensor& tokens, at::Tensor& rows,
                                                     const ops::Guesses& guesses);

}  // namespace lamplighter

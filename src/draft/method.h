#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "draft/draft_method.h"
#include "draft/none.h"
#include "kernels/ops.h"
#include "lamplighter/bundle.h"
#include "lamplighter/options.h"
#include "tree/tree.h"
#include "tree/window_fill.h"

namespace lamplighter {

// A window of drafts that lasts for several cycles.
struct WindowOptions {
  bool keep = true;  // drafts stay where they may, instead of being sampled anew in every cycle
  WindowFill fill = WindowFill::uniform;
  std::int64_t front = 0;                    // positions that a drafter fills in every cycle, the first ones
  MakeTreeDraftMethod make_front = nullptr;  // makes what fills them
};

// How the cycles of a run draft and verify. The default is autoregression.
struct Method {
  MakeDraftMethod draft_method = &make_none;
  MethodOptions options;  // as resolved; what a draft method alone reads it takes from here
  std::optional<Tree> tree = preset_tree("chain-0");  // of every cycle; none: it changes
  std::int64_t tail = 0;                              // tokens of the n-grams that lookahead decoding keeps
  WindowOptions window;                               // of speculative Jacobi decoding
  std::int64_t row_window = 0;  // drafts of an image row's window, in row-parallel decoding
  // A chain ends where the product of the drafter's largest probabilities is smaller; 0: never.
  float confidence = 0;
  bool adapts = false;  // drafts are as large as the positions beside them let expect (adapt/adaptation.h)
  bool conditional = false;   // guided pairs draft from their conditional half alone
  bool padded = false;        // the drafter reads the padding of prompts, too
  ops::VerifyOptions verify;  // the acceptance rule; tensors on the device of the run
};

// A method as resolve_method (lamplighter/method.h) gives it, ready to run: trees parsed, tables on the
// device. `greedy`: the run is at temperature 0, where children are the most probable tokens. Throws Error
// (input, bundle).
Method make_method(const MethodOptions& resolved, const Manifest& manifest, const c10::Device& device,
                   bool greedy);

}  // namespace lamplighter

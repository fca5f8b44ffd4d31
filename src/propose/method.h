#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "kernels/ops.h"
#include "lamplighter/bundle.h"
#include "propose/proposer.h"
#include "tree/tree.h"
#include "tree/window_fill.h"

namespace lamplighter {

// A window of drafts that outlives a cycle.
struct WindowOptions {
  bool keep = true;  // drafts stay where they may, instead of being drawn anew in every cycle
  WindowFill fill = WindowFill::uniform;
  std::int64_t front = 0;  // places that a drafter fills in every cycle, the first ones
};

// Rows of a picture that are drawn side by side.
struct RowOptions {
  std::int64_t ahead = 0;  // codes that a row is longer than the next, 1 or more; 0: half of its columns
  bool blank = false;      // what a row lacks of the picture before it is seen as zeros, not left out
  std::int64_t slots = 0;  // drafts of a row's window
};

// A target that drafts with its own first layers.
struct SelfOptions {
  std::int64_t layers = 0;  // how many
  std::int64_t window = 0;  // newest rows of the picture that they see; 0: all
};

// How the cycles of a run draft and judge. The default is autoregression.
struct Method {
  MakeProposer proposer = &make_none;
  std::optional<Tree> tree = preset_tree("chain-0");  // that of every cycle; none: it changes
  struct {
    std::int64_t passes = 0;  // expansions after the first
    std::int64_t width = 0;   // nodes expanded per level
    std::int64_t nodes = 0;   // drafted nodes kept
  } dynamic;                  // of trees that EAGLE-2 grows
  std::int64_t tail = 0;      // tokens of the runs that lookahead decoding keeps
  WindowOptions window;       // of speculative Jacobi decoding
  RowOptions rows;            // of ZipAR
  SelfOptions self;
  // A chain ends where the probabilities of the drafter's likeliest tokens multiply to less; 0: it never
  // does.
  float confidence = 0;
  bool conditional = false;  // guided pairs draft from their conditional half alone
  bool padded = false;       // prompts come with the padding's rows, which its drafter reads
  ops::JudgeOptions judge;   // the acceptance rule; tensors on the device of the run
};

// A method as resolve_method (lamplighter/method.h) gives it, ready to run: trees parsed, tables on the
// device. `greedy`: the run is at temperature 0, where children are the most probable ones. Throws Error
// (input, bundle).
Method make_method(const MethodOptions& resolved, const Manifest& manifest, const c10::Device& device,
                   bool greedy);

}  // namespace lamplighter

#pragma once

#include <cstdint>
#include <vector>

#include "draft/method.h"

namespace lamplighter {

// The window of speculative Jacobi decoding (jacobi.h) where one operator, window_step, does all that follows
// the target's pass. It serves chains under the rule `exact`; the codes are the same as without it.
class WindowSteps {
 public:
  // Whether it can do what the method asks for.
  static bool serve(const Method& method);

  // `codes`: ids that are codes, the first ones of the head's.
  WindowSteps(const WindowOptions& options, const Target& target, const RunShape& shape, std::int64_t nodes,
              std::int64_t codes);

  // Guesses the window behind the first token.
  void begin(const RunState& run);
  Draft draft(const Topology& nodes) const;
  // Verifies the draft, commits, and makes the next window.
  ops::WindowRows finish(const at::Tensor& logits, const Draft& draft, const Scores& scores, RunState& run);
  std::vector<PerImage> per_image();

 private:
  WindowFill fill_;
  bool keep_;
  std::int64_t columns_, codes_;
  ops::WindowState window_;
};

}  // namespace lamplighter

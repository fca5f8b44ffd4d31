#pragma once

#include "propose/method.h"

namespace lamplighter {

// The target's hidden state that the root of every image was drawn from: what heads read.
class HiddenState {
 public:
  HiddenState(const Method& method, const Target& target);

  void allocate(const RunShape& shape);
  void learn(const Scores& scores, const Judged& judged, const RunState& run);
  PerImage per_image() { return {&rows_, 0}; }

  // [Sd, 1, H]; Sd = sequences, or one per image with conditional drafting.
  const at::Tensor& rows() const { return rows_; }
  // One entry per image as one per drafting sequence.
  at::Tensor per_sequence_of(const at::Tensor& per_image, const RunState& run) const;

 private:
  bool conditional_;
  at::Tensor like_;  // [0] of the state's type
  std::int64_t width_;
  at::Tensor rows_;
};

}  // namespace lamplighter

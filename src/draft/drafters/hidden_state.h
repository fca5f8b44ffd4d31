#pragma once

#include "draft/method.h"

namespace lamplighter {

// The target's hidden state from which the last token of every image was sampled. Heads read it.
class HiddenState {
 public:
  HiddenState(const Method& method, const Target& target);

  void allocate(const RunShape& shape);
  void update(const Scores& scores, const Verified& verified, const RunState& run);
  PerImage per_image() { return {&rows_, 0}; }

  // [Sd, 1, H]; Sd = sequences, or one per image with conditional drafting.
  const at::Tensor& rows() const { return rows_; }
  // Repeats a value per image for its drafting sequences.
  at::Tensor per_sequence_of(const at::Tensor& per_image, const RunState& run) const;

 private:
  bool conditional_;
  at::Tensor like_;  // [0] of the state's type
  std::int64_t width_;
  at::Tensor rows_;
};

}  // namespace lamplighter

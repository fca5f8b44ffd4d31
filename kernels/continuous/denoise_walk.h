#pragma once

#include <algorithm>

#include "kernels/continuous/denoise.h"

// The order of a chain's products and of what lies between them, written once for every device.
namespace lamplighter {

// The conditions of a chain are known before it begins, so several steps share a pass over the
// weights of the modulation, which are more than half of all weights. This is the most rows that share one.
constexpr int64_t kDenoiseSharedRows = 64;

// Tokens that go through the chain together, and their memory.
class DenoiseWalk {
 public:
  DenoiseWalk(const DenoiseHead& head, int64_t tokens, bool guided)
      : head_(head),
        rows_(guided ? 2 * tokens : tokens),
        steps_(std::clamp<int64_t>(kDenoiseSharedRows / std::max<int64_t>(rows_, 1), 1, head.steps)),
        width_(head.input.out),
        wide_(std::max(width_, head.output.out)) {}

  // Floats that run() works in.
  int64_t floats() const {
    return rows_ * (3 * width_ + wide_) + steps_ * rows_ * (width_ + head_.modulation.out);
  }

  // At most as many tokens as the constructor got. Device has
  //   product(DenoiseProduct, x, rows, out)    out [rows, out] = x [rows, in] W^T, without the bias
  //   silu(), advance(), step()                with the arguments of these names
  template <class Device>
  void run(const Device& device, const DenoiseTokens& tokens, float* memory) const {
    const int64_t rows = tokens.unconditional != nullptr ? 2 * tokens.tokens : tokens.tokens;
    Rooms rooms{};
    rooms.conditions = memory;
    rooms.stream = rooms.conditions + rows_ * width_;
    rooms.values = rooms.stream + rows_ * width_;
    rooms.hidden = rooms.values + rows_ * width_;
    rooms.timed = rooms.hidden + rows_ * wide_;
    rooms.factors = rooms.timed + steps_ * rows_ * width_;

    device.product(head_.condition, tokens.z, tokens.tokens, rooms.conditions);
    if (tokens.unconditional != nullptr) {
      device.product(head_.condition, tokens.unconditional, tokens.tokens,
                     rooms.conditions + tokens.tokens * width_);
    }
    for (int64_t last = head_.steps, first = 0; last > 0; last = first) {
      first = std::max<int64_t>(0, last - steps_);
      device.silu(DenoiseSiluArgs{rooms.conditions, head_.condition.bias, head_.times + first * width_,
                                  rooms.timed, rows, last - first, width_});
      device.product(head_.modulation, rooms.timed, (last - first) * rows, rooms.factors);
      for (int64_t step = last - 1; step >= first; --step) {
        const float* factors = rooms.factors + (step - first) * rows * head_.modulation.out;
        run_step(device, tokens, rooms, step, rows, factors);
      }
    }
  }

 private:
  struct Rooms {
    float* conditions;  // [rows, width], without bias and time
    float* stream;      // [rows, width]
    float* values;      // [rows, width]: what goes into a block, and what comes from it
    float* hidden;      // [rows, width], inside a block, or [rows, 2 * channels]
    float* timed;       // [steps, rows, width], conditions with their times
    float* factors;     // [steps, rows, outputs of the modulation]
  };

  template <class Device>
  void run_step(const Device& device, const DenoiseTokens& tokens, const Rooms& rooms, int64_t step,
                int64_t rows, const float* factors) const {
    const float* x = step == head_.steps - 1 ? tokens.start : tokens.mean;
    device.product(head_.input, x, tokens.tokens, rooms.hidden);
    DenoiseAdvanceArgs advance{};
    advance.stream = rooms.stream;
    advance.added = rooms.hidden;
    advance.bias = head_.input.bias;
    advance.factors = factors;
    advance.factors_bias = head_.modulation.bias;
    advance.out = rooms.values;
    advance.rows = rows;
    advance.added_rows = tokens.tokens;
    advance.width = width_;
    advance.stride = head_.modulation.out;
    advance.eps = head_.eps;
    advance.first = true;
    for (const DenoiseBlock& block : head_.blocks) {
      advance.norm_weight = block.norm_weight;
      advance.norm_bias = block.norm_bias;
      device.advance(advance);
      device.product(block.inner, rooms.values, rows, rooms.hidden);
      device.silu(DenoiseSiluArgs{rooms.hidden, block.inner.bias, nullptr, rooms.hidden, rows, 1, width_});
      device.product(block.outer, rooms.hidden, rows, rooms.values);
      advance.first = false;
      advance.added = rooms.values;
      advance.added_rows = rows;
      advance.bias = block.outer.bias;
      advance.factors += 3 * width_;
      advance.factors_bias += 3 * width_;
    }
    advance.norm_weight = nullptr;
    advance.norm_bias = nullptr;
    device.advance(advance);
    device.product(head_.output, rooms.values, rows, rooms.hidden);
    device.step(DenoiseStepArgs{rooms.hidden, head_.output.bias, x, head_.tables + step * kDenoiseTable,
                                tokens, head_.input.in, head_.steps, step});
  }

  const DenoiseHead& head_;
  int64_t rows_;
  int64_t steps_;  // whose modulations are computed at once
  int64_t width_;
  int64_t wide_;
};

}  // namespace lamplighter

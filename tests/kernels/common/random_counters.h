#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>

#include <cstdint>
#include <random>

#include "kernels/ops.h"
#include "tests/kernels/common/operators.h"

namespace lamplighter::test {

// Counters of images of `total` tokens at random steps, before a cycle of at most `drafts` drafts; a few
// images are complete, and a few have met a row that is no distribution.
inline ops::Counters random_counters(std::mt19937& rng, int64_t images, int64_t sequences, int64_t vocabulary,
                                     int64_t total, int64_t drafts) {
  const auto random = [&](at::IntArrayRef sizes, int64_t low, int64_t high) {
    return integers(sizes, [&](int64_t) { return pick(rng, low, high); });
  };
  ops::Counters state;
  state.total = total;
  state.last_position = 60;
  state.first_image_id = 3;
  state.image = random({images}, -1, 7);
  state.steps = random({images}, 0, total);
  state.codes = random({images, total + drafts + 1}, 0, vocabulary - 1);
  state.root = random({images}, 0, vocabulary - 1);
  state.bad = random({images}, 0, 3).eq(0);
  state.lengths = random({sequences}, 0, 40);
  state.position = random({sequences}, 0, 40);
  state.root_ids = at::full({sequences, 1}, -1, at::kLong);
  state.root_positions = at::full({sequences, 1}, -1, at::kLong);
  state.report = random({images, report::width(drafts)}, -9, 9);
  return state;
}

}  // namespace lamplighter::test

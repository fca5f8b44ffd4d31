#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "kernels/ops.h"
#include "tests/kernels/common/operators.h"

#include "tests/kernels/common/emulated_device.h"

namespace lamplighter::test {

template <class Kernel>
inline void on_device(int64_t blocks, unsigned threads, size_t shared_bytes, Kernel kernel) {
  emulated::launch({static_cast<unsigned>(blocks)}, {threads}, shared_bytes, kernel);
}

// Random rows of logits for kernels on an emulated device.
class EmulatedRowsTest : public ::testing::Test {
 protected:
  void SetUp() override { emulated::shuffle() = 0; }

  // Logits [S, R, V] of some dtype, guided or not, and settings of the filters for them.
  struct Rows {
    at::Tensor logits, guidance, temperature, top_k, top_p;
    std::string order;

    ops::Filtering filtering() const { return {guidance, temperature, top_k, top_p, order}; }
    ops::Distributions filtered() const { return ops::guide_and_filter(logits, filtering()); }
  };

  Rows rows_of(at::Tensor logits, int trial) {
    const int64_t images = logits.size(0), vocabulary = logits.size(2);
    emulated::shuffle() = static_cast<unsigned>(trial);
    if (trial % 3 == 0) logits = (logits * 2).round();  // ties
    if (trial % 2 == 1) {
      const at::Tensor other = logits + random_tensor(rng_, logits.sizes(), at::kFloat, 0.5F);
      logits = at::stack({logits, other}, 1).flatten(0, 1);
    }
    const at::ScalarType types[] = {at::kFloat, at::kBFloat16, at::kHalf};
    const auto each = [&](double value) { return at::full({images}, value, at::kFloat); };
    Rows rows{logits.to(types[trial % 3]),      each(2.5),
              each(trial % 7 == 6 ? 0.0 : 0.9), {},
              each(trial % 4 == 3 ? 0.8 : 1.0), trial % 5 < 3 ? "ar" : "eagle"};
    rows.top_k = integers({images}, [&](int64_t) {
      return trial % 2 * pick(rng_, 0, 1) * pick(rng_, 1, vocabulary) +
             (1 - trial % 2) * pick(rng_, 1, vocabulary);
    });
    return rows;
  }

  at::Tensor random_logits(int trial, int64_t images, int64_t rows) {
    const int64_t vocabulary = trial % 4 == 0 ? pick(rng_, 2000, 6000) : pick(rng_, 1, 700);
    return random_tensor(rng_, {images, rows, vocabulary}, at::kFloat, 2);
  }

  std::mt19937 rng_{31};
};

// Equal bits, but for the norm, a sum of numbers that round.
inline void expect_statistics(at::Tensor got, const at::Tensor& expected) {
  constexpr int64_t kNorm = 3;
  EXPECT_LE((got.select(2, kNorm) / expected.select(2, kNorm) - 1).nan_to_num().abs().max().item<float>(),
            6e-8F);
  got.select(2, kNorm).copy_(expected.select(2, kNorm));
  EXPECT_TRUE(same_bits(got, expected)) << got << expected;
}

}  // namespace lamplighter::test

#pragma once

#include <ATen/Parallel.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "tests/decode/toy.h"

// Images of a few rows, for methods that sample rows side by side.
namespace lamplighter::test {

constexpr std::int64_t kRows = 5, kColumns = 6;

inline SyntheticShape rows_shape() {
  SyntheticShape shape;
  shape.vocabulary = 12;
  shape.rows = kRows;
  shape.columns = kColumns;
  shape.weight_scale = 1.5;
  return shape;
}

// Four guided images.
inline std::vector<DecodeRequest> requests(float temperature, std::int64_t interval = -1) {
  std::vector<DecodeRequest> all(4);
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    all[seed].sampling.cfg_scale = 2.5F;
    all[seed].sampling.cfg_interval = interval;
    all[seed].sampling.temperature = temperature;
    all[seed].seed = seed;
  }
  return all;
}

class RowsTest : public ::testing::TestWithParam<c10::ScalarType> {
 protected:
  void SetUp() override { at::set_num_threads(1); }
  const Toy toy_{rows_shape(), GetParam()};
  const Prompts prompts_ = toy_.prompts({0, 1, 2, 3}, true);

  at::Tensor run(const Method& method, const std::vector<DecodeRequest>& samples,
                 const OnCycle& on_cycle = {}) const {
    return decode(toy_.models(), method, prompts_, samples, toy_.grid(), on_cycle);
  }

  // Images of a batch, of unlike settings, are those sampled alone.
  void expect_batch_is_alone(const Method& method) const {
    auto all = requests(1);
    all[2].sampling.cfg_interval = 7;
    all[3].sampling.temperature = 0.5F;
    const at::Tensor together = run(method, all);
    for (std::int64_t image = 0; image < 4; ++image) {
      const at::Tensor alone = decode(toy_.models(), method, toy_.prompts({image}, true),
                                      {all[static_cast<std::size_t>(image)]}, toy_.grid());
      EXPECT_TRUE(at::equal(alone, together.narrow(0, image, 1))) << image;
    }
  }
};

}  // namespace lamplighter::test

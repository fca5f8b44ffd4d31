#pragma once

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "tests/decode/toy.h"

// Pictures of a few rows, for methods that draw rows side by side.
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

// Four guided pictures.
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

  at::Tensor run(const Method& method, const std::vector<DecodeRequest>& draws,
                 const OnCycle& on_cycle = {}) const {
    return decode(toy_.models(), method, prompts_, draws, toy_.grid(), on_cycle);
  }
};

}  // namespace lamplighter::test

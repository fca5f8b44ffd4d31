#pragma once

#include <ATen/Parallel.h>
#include <c10/core/ScalarType.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <tuple>

#include "kernels/common/isa.h"

namespace lamplighter::test {

// Those that have kernels of every family.
inline auto instruction_sets() {
  return ::testing::Values(Isa::kPortable, Isa::kNeon, Isa::kAvx2, Isa::kAvx512);
}

// Tests over instruction set and dtype.
using KernelCase = std::tuple<Isa, at::ScalarType>;

class KernelTest : public ::testing::TestWithParam<KernelCase> {
 protected:
  void SetUp() override {
    at::set_num_threads(1);
    if (limit_isa(std::get<0>(GetParam())) != std::get<0>(GetParam())) GTEST_SKIP() << "not on this CPU";
  }
  void TearDown() override { limit_isa(kBestIsa); }

  at::ScalarType dtype() const { return std::get<1>(GetParam()); }
  std::mt19937 rng_{20240229};
};

inline std::string case_name(const ::testing::TestParamInfo<KernelCase>& info) {
  return isa_name(std::get<0>(info.param)) +
         std::string(std::get<1>(info.param) == at::kFloat ? "_fp32" : "_bf16");
}

inline auto all_cases() {
  return ::testing::Combine(instruction_sets(), ::testing::Values(at::kFloat, at::kBFloat16));
}

}  // namespace lamplighter::test

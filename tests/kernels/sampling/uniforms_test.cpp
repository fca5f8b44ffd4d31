#include <ATen/core/Tensor.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/philox.h"
#include "kernels/ops.h"
#include "tests/kernels/common/operators.h"

namespace lamplighter::test {
namespace {

using ::testing::ElementsAre;

TEST(UniformsTest, DependOnSeedStepPurposeAndNodeAlone) {
  const at::Tensor seeds =
      at::tensor({int64_t{42}, int64_t{-1}, std::numeric_limits<int64_t>::min()}, at::kLong);
  const at::Tensor steps = at::tensor({0, 5, 575}, at::kLong);
  const at::Tensor all = ops::uniforms(seeds, steps, ops::Purpose::children, 100);
  ASSERT_THAT(all.sizes().vec(), ElementsAre(3, 100));
  for (int64_t image = 0; image < 3; ++image) {
    const auto one = [image](const at::Tensor& t) { return t.slice(0, image, image + 1); };
    const at::Tensor alone = ops::uniforms(one(seeds), one(steps), ops::Purpose::children, 17);
    EXPECT_TRUE(same_bits(alone[0], all[image].slice(0, 0, 17)));
    for (uint32_t node = 0; node < 100; ++node) {
      const float u = all[image][node].item<float>();
      EXPECT_EQ(u, philox_uniform(static_cast<uint64_t>(seeds[image].item<int64_t>()),
                                  static_cast<uint32_t>(steps[image].item<int64_t>()), 2, node));
      EXPECT_TRUE(u >= 0 && u < 1 && u * 0x1p24F == std::floor(u * 0x1p24F));
    }
  }
  EXPECT_FALSE(all.equal(ops::uniforms(seeds, steps, ops::Purpose::token, 100)));
}

// Kolmogorov-Smirnov distance of uniforms over nodes, over steps and over seeds, level 1e-6.
TEST(UniformsTest, AreUniformAlongEveryAxis) {
  constexpr int64_t kCount = 1 << 17;
  const at::Tensor rising = integers({kCount}, [](int64_t i) { return i; });
  const at::Tensor zero = at::zeros({kCount}, at::kLong);
  const at::Tensor first = at::zeros({1}, at::kLong);
  const std::vector<at::Tensor> axes = {ops::uniforms(first, first, ops::Purpose::accept, kCount),
                                        ops::uniforms(zero, rising, ops::Purpose::accept, 1),
                                        ops::uniforms(rising, zero, ops::Purpose::accept, 1)};
  for (const at::Tensor& axis : axes) {
    const float* p = axis.const_data_ptr<float>();
    std::vector<float> sorted(p, p + kCount);
    std::sort(sorted.begin(), sorted.end());
    double distance = 0;
    for (size_t i = 0; i < sorted.size(); ++i) {
      distance =
          std::max(distance, std::abs(static_cast<double>(i) / kCount - static_cast<double>(sorted[i])));
    }
    EXPECT_LT(distance, 2.7 / std::sqrt(static_cast<double>(kCount)));
  }
}

}  // namespace
}  // namespace lamplighter::test

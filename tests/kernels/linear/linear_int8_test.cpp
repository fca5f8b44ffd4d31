#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/linear/linear.h"
#include "tests/kernels/common/kernel_test.h"
#include "tests/kernels/common/operators.h"

namespace lamplighter::test {
namespace {

using ::testing::HasSubstr;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

class LinearInt8Test : public KernelTest {
 protected:
  void TearDown() override {
    at::set_num_threads(1);
    KernelTest::TearDown();
  }
  // dtype() is that of the weights; rows are bf16.
  at::Tensor weights(int64_t out, int64_t in) { return random_tensor(rng_, {out, in}, dtype()); }
  at::Tensor rows(int64_t count, int64_t in) { return random_tensor(rng_, {count, in}, at::kBFloat16); }
};

INSTANTIATE_TEST_SUITE_P(Kernels, LinearInt8Test, all_cases(), case_name);

// Largest |row| / steps: the distance of two neighbouring integers.
at::Tensor steps_of(const at::Tensor& values, int64_t steps) {
  return std::get<0>(values.abs().max(1, true)) / static_cast<double>(steps);
}

// Largest |result - x W^T| over what rounding both factors to half a step, and the result to bf16, allows.
double error_ratio(const at::Tensor& result, const at::Tensor& x, const at::Tensor& weight) {
  const at::Tensor a = x.to(at::kDouble), w = weight.to(at::kDouble);
  const at::Tensor exact = at::matmul(a, w.t());
  const at::Tensor a_error = steps_of(a, linear_int8_most(x.size(1) + x.size(1) % 2)) / 2 * 1.0001;
  const at::Tensor w_error = steps_of(w, 127) / 2 * 1.0001;
  const auto sum = [](const at::Tensor& t) { return t.abs().sum(1, true); };
  const at::Tensor rounding = at::matmul(sum(a), w_error.t()) + at::matmul(a_error, sum(w).t()) +
                              at::matmul(a_error, w_error.t()) * static_cast<double>(x.size(1));
  const at::Tensor bound = rounding + (exact.abs() + rounding) / 256 + 1e-30;
  return ((result.to(at::kDouble) - exact).abs() / bound).max().item<double>();
}

// x W^T with both factors rounded as kernels/linear/linear.h says, in double precision.
at::Tensor rounded_product(const at::Tensor& x, const at::Tensor& weight) {
  const auto nearest = [](const at::Tensor& values, int64_t steps) {
    const at::Tensor single = values.to(at::kFloat);
    const at::Tensor range = std::get<0>(single.abs().max(1, true));
    const at::Tensor factor = at::full_like(range, static_cast<float>(steps)) / range;
    return std::pair((single * factor).round().to(at::kDouble),
                     (range / static_cast<float>(steps)).to(at::kDouble));
  };
  const auto [a, a_scale] = nearest(x, linear_int8_most(x.size(1) + x.size(1) % 2));
  const auto [w, w_scale] = nearest(weight, 127);
  return at::matmul(a, w.t()) * a_scale * w_scale.t();
}

TEST_P(LinearInt8Test, RandomShapesAreWithinTheRounding) {
  for (int trial = 0; trial < 64; ++trial) {
    const int64_t count = trial + 1;
    const int64_t in = trial % 3 == 0 ? pick(rng_, 1, 70) : pick(rng_, 1, 600);
    const int64_t out = trial % 4 == 0 ? pick(rng_, 1, 20) : pick(rng_, 1, 300);
    SCOPED_TRACE(testing::Message() << count << " rows, in " << in << ", out " << out);
    const at::Tensor x = rows(count, in);
    const at::Tensor weight = weights(out, in);
    const at::Tensor packed = pack_linear_int8(weight);
    ASSERT_EQ(packed.scalar_type(), at::kChar);
    ASSERT_EQ(packed.sizes(), at::IntArrayRef({(out + 15) / 16, (in + 1) / 2 * 2 + 4, 16}));
    const at::Tensor result = linear(x, packed, out);
    ASSERT_EQ(result.sizes(), at::IntArrayRef({count, out}));
    ASSERT_EQ(result.scalar_type(), at::kBFloat16);
    ASSERT_LE(error_ratio(result, x, weight), 1.0);
    // Nothing is lost but the rounding of the factors: a step of bf16 and a few of fp32 remain.
    const at::Tensor product = rounded_product(x, weight);
    ASSERT_LE(((result.to(at::kDouble) - product).abs() / (product.abs() / 255 + 1e-6)).max().item<double>(),
              1.0);
  }
}

// The largest sums that a width allows: every product has the same sign and both factors their largest size.
TEST_P(LinearInt8Test, NoSumOverflows) {
  for (const int64_t in : {2, 515, 516, 518, 1024, 2816, 4097, 11008, 131071, 131072}) {
    SCOPED_TRACE(in);
    const at::Tensor x = at::full({2, in}, 3.0, at::kBFloat16);
    x[1].neg_();
    const at::Tensor packed = pack_linear_int8(at::full({17, in}, 0.5, dtype()));
    const at::Tensor expected = at::full({17}, 1.5 * static_cast<double>(in), at::kBFloat16);
    const at::Tensor result = linear(x, packed, 17);
    EXPECT_TRUE(same_bits(result[0], expected)) << result[0][0].item<float>();
    EXPECT_TRUE(same_bits(result[1], -expected)) << result[1][0].item<float>();
  }
  EXPECT_EQ(linear_int8_most(2), 32767);
  EXPECT_LT(int64_t{131072} * 127 * linear_int8_most(131072), int64_t{1} << 31);
}

TEST_P(LinearInt8Test, EqualBitsForAllInstructionSets) {
  for (int trial = 0; trial < 40; ++trial) {
    const int64_t in = pick(rng_, 1, 400), out = pick(rng_, 1, 200);
    const at::Tensor x = rows(pick(rng_, 1, 30), in) * std::pow(10.0, pick(rng_, -6, 6));
    const at::Tensor packed = pack_linear_int8(weights(out, in));
    const at::Tensor result = linear(x, packed, out);
    limit_isa(Isa::kPortable);
    EXPECT_TRUE(same_bits(linear(x, packed, out), result)) << "in " << in << ", out " << out;
    limit_isa(std::get<0>(GetParam()));
  }
}

TEST_P(LinearInt8Test, RowsAndThreadsDoNotChangeBits) {
  for (const auto& [in, out] : {std::pair<int64_t, int64_t>{192, 1000}, {333, 129}, {1025, 48}}) {
    const at::Tensor packed = pack_linear_int8(weights(out, in));
    const at::Tensor x = rows(300, in);
    at::set_num_threads(1);
    const at::Tensor all = linear(x, packed, out);
    for (int64_t count = 1; count <= 64; ++count) {
      at::set_num_threads(1 + static_cast<int>(count % 3));
      const int64_t first = 7 * count % 230;
      ASSERT_TRUE(same_bits(linear(x.narrow(0, first, count), packed, out), all.narrow(0, first, count)))
          << count << " rows, in " << in << ", out " << out;
    }
  }
}

TEST_P(LinearInt8Test, RangesStayInTheirRow) {
  const at::Tensor weight = weights(40, 37);
  weight[5].mul_(1e4);
  weight[6].zero_();
  weight[7][3] = kInfinity;
  const at::Tensor packed = pack_linear_int8(weight);
  at::Tensor x = rows(7, 37);
  const at::Tensor clean = linear(x, packed, 40);
  x[1][36] = kNan;
  x[2].mul_(1e20);
  x[3][0] = -kInfinity;
  x[4].zero_();
  x[5].mul_(1e-38);
  const at::Tensor result = linear(x, packed, 40);
  for (const int64_t row : {0, 6}) EXPECT_TRUE(same_bits(result[row], clean[row]));
  EXPECT_TRUE(result[1].isnan().all().item<bool>());
  EXPECT_TRUE(result[3].isnan().all().item<bool>());
  EXPECT_TRUE(result.select(1, 7).isnan().all().item<bool>());
  EXPECT_EQ(result[0][6].item<float>(), 0);
  const auto others = [](const at::Tensor& row) { return row.narrow(0, 8, 32); };
  EXPECT_EQ(others(result[4]).abs().max().item<float>(), 0);
  EXPECT_LT(others(result[5]).abs().max().item<float>(), 1e-30F);
  EXPECT_LE(error_ratio(others(result[2]).unsqueeze(0), x[2].unsqueeze(0), weight.narrow(0, 8, 32)), 1.0);
}

TEST_P(LinearInt8Test, LeadingDimensionsAreRows) {
  const at::Tensor packed = pack_linear_int8(weights(24, 9));
  const at::Tensor x = rows(6, 9);
  const at::Tensor result = linear(x, packed, 24);
  EXPECT_TRUE(same_bits(linear(x.view({2, 3, 9}), packed, 24), result.view({2, 3, 24})));
  EXPECT_TRUE(same_bits(linear(x[4], packed, 24), result[4]));
  EXPECT_EQ(linear(x.narrow(0, 0, 0), packed, 24).sizes(), at::IntArrayRef({0, 24}));
}

TEST(LinearInt8Errors, NameWhatIsWrong) {
  const at::Tensor weight = at::zeros({20, 7});
  const at::Tensor packed = pack_linear_int8(weight);
  const at::Tensor x = at::zeros({2, 7}, at::kBFloat16);
  EXPECT_THAT(message_of([&] { pack_linear_int8(at::zeros({4})); }), HasSubstr("expected [out, in]"));
  EXPECT_THAT(message_of([&] { pack_linear_int8(at::zeros({4, 0})); }), HasSubstr("no empty dimension"));
  EXPECT_THAT(message_of([&] { pack_linear_int8(weight.to(at::kHalf)); }),
              HasSubstr("pack_linear_int8: weight has dtype Half"));
  EXPECT_THAT(message_of([&] {
                pack_linear_int8(at::zeros({1, 131073}));
              }),
              HasSubstr("at most 131072 input features"));
  EXPECT_THAT(message_of([&] { linear(x.to(at::kFloat), packed, 20); }),
              HasSubstr("linear: x has dtype Float, expected BFloat16"));
  EXPECT_THAT(message_of([&] {
                linear(at::zeros({2, 9}, at::kBFloat16), packed, 20);
              }),
              HasSubstr("weight has shape [2, 12, 16], expected [2, 14, 16]"));
  EXPECT_THAT(message_of([&] { linear(x, packed, 33); }), HasSubstr("expected [3, 12, 16]"));
  EXPECT_THAT(message_of([&] { linear(x, packed, 0); }), HasSubstr("out_features is 0"));
  EXPECT_THAT(message_of([&] { linear(x, packed[0], 16); }), HasSubstr("weight has shape [12, 16]"));
  EXPECT_THAT(message_of([&] {
                linear(at::zeros({7, 2}, at::kBFloat16).t(), packed, 20);
              }),
              HasSubstr("expected a contiguous tensor"));
}

}  // namespace
}  // namespace lamplighter::test

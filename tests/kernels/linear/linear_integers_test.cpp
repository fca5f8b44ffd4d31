#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/full.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <tuple>

#include "kernels/common/isa.h"
#include "kernels/linear/linear.h"
#include "tests/kernels/common/kernel_test.h"
#include "tests/kernels/common/operators.h"

namespace lamplighter::test {
namespace {

using ::testing::HasSubstr;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

using Case = std::tuple<Isa, at::ScalarType, int>;

class LinearIntegersTest : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    at::set_num_threads(1);
    if (limit_isa(std::get<0>(GetParam())) != std::get<0>(GetParam())) GTEST_SKIP() << "not on this CPU";
  }
  void TearDown() override {
    at::set_num_threads(1);
    limit_isa(kBestIsa);
  }
  int bits() const { return std::get<2>(GetParam()); }
  // In the dtype of the case; rows are bf16.
  at::Tensor weights(int64_t out, int64_t in) {
    return random_tensor(rng_, {out, in}, std::get<1>(GetParam()));
  }
  at::Tensor rows(int64_t count, int64_t in) { return random_tensor(rng_, {count, in}, at::kBFloat16); }
  at::Tensor packed(const at::Tensor& weight) const { return pack_linear(round_linear(weight, bits())); }

  std::mt19937 rng_{20240229};
};

std::string name_of(const ::testing::TestParamInfo<Case>& info) {
  return isa_name(std::get<0>(info.param)) +
         std::string(std::get<1>(info.param) == at::kFloat ? "_fp32" : "_bf16") + "_int" +
         std::to_string(std::get<2>(info.param));
}

INSTANTIATE_TEST_SUITE_P(
    Kernels, LinearIntegersTest,
    ::testing::Combine(::testing::Values(Isa::kPortable, Isa::kNeon, Isa::kAvx2, Isa::kAvxVnni, Isa::kAvx512),
                       ::testing::Values(at::kFloat, at::kBFloat16), ::testing::Values(8, 4)),
    name_of);

at::Tensor whole_groups(const at::Tensor& values, int64_t group = kLinearGroup) {
  return at::constant_pad_nd(values, {0, (values.size(1) + group - 1) / group * group - values.size(1)});
}

// Rounded weights [out, bytes] as numbers [out, in], in double precision.
at::Tensor numbers_of(const at::Tensor& rounded, int64_t in) {
  if (rounded.scalar_type() == at::kChar) {
    const at::Tensor scales = rounded.narrow(1, in, 4).clone(at::MemoryFormat::Contiguous).view(at::kFloat);
    return rounded.narrow(1, 0, in).to(at::kDouble) * scales.to(at::kDouble);
  }
  const at::Tensor groups = rounded.view({rounded.size(0), -1, 34});
  const at::Tensor scales =
      groups.narrow(2, 0, 2).clone(at::MemoryFormat::Contiguous).view(at::kBFloat16).to(at::kDouble);
  const at::Tensor bytes = groups.narrow(2, 2, 32).view({rounded.size(0), -1, 8, 1, 4});
  const at::Tensor halves = at::cat({bytes.bitwise_and(15), bytes.bitwise_right_shift(4)}, 3);
  const at::Tensor integers = halves.to(at::kDouble).reshape({rounded.size(0), -1, kLinearGroup}) - 8;
  return (integers * scales).reshape({rounded.size(0), -1}).narrow(1, 0, in);
}

// x W^T with the rows rounded as kernels/linear/linear.h says, in double precision; and the sum of the sizes
// of its terms.
std::pair<at::Tensor, at::Tensor> rounded_product(const at::Tensor& x, const at::Tensor& numbers, int bits) {
  const int64_t group = bits == 8 ? kLinearRowGroup : kLinearGroup;
  const at::Tensor groups = whole_groups(x.to(at::kFloat), group).view({x.size(0), -1, group});
  const at::Tensor range = std::get<0>(groups.abs().max(2, true));
  const at::Tensor integers = (groups * (at::full({1}, 127.0F) / range)).round().to(at::kDouble);
  const at::Tensor a = (integers * (range / 127.0F).to(at::kDouble)).view({x.size(0), -1});
  const at::Tensor w = whole_groups(numbers, group);
  return {at::matmul(a, w.t()), at::matmul(a.abs(), w.abs().t())};
}

TEST_P(LinearIntegersTest, ProductsLoseNothingButTheRounding) {
  for (int trial = 0; trial < 64; ++trial) {
    const int64_t count = trial + 1;
    const int64_t in = trial % 3 == 0 ? pick(rng_, 1, 70) : pick(rng_, 1, 600);
    const int64_t out = trial % 4 == 0 ? pick(rng_, 1, 20) : pick(rng_, 1, 300);
    SCOPED_TRACE(testing::Message() << count << " rows, in " << in << ", out " << out);
    const at::Tensor x = rows(count, in);
    const at::Tensor rounded = round_linear(weights(out, in), bits());
    ASSERT_EQ(rounded.sizes(), at::IntArrayRef({out, linear_rounded_bytes(bits(), in)}));
    const at::Tensor result = linear(x, pack_linear(rounded), out);
    ASSERT_EQ(result.sizes(), at::IntArrayRef({count, out}));
    ASSERT_EQ(result.scalar_type(), at::kBFloat16);
    const auto [product, terms] = rounded_product(x, numbers_of(rounded, in), bits());
    const at::Tensor bound = product.abs() / 255 + terms * 1e-6;  // a step of bf16 and a few of fp32
    ASSERT_LE(((result.to(at::kDouble) - product).abs() / bound).max().item<double>(), 1.0);
  }
}

TEST_P(LinearIntegersTest, WeightsAreRoundedToTheNearest) {
  const at::Tensor weight = weights(50, 130);
  const at::Tensor numbers = numbers_of(round_linear(weight, bits()), 130);
  const at::Tensor error = (numbers - weight.to(at::kDouble)).abs();
  if (bits() == 8) {
    const at::Tensor half_step = std::get<0>(weight.to(at::kDouble).abs().max(1, true)) / 254;
    EXPECT_LE((error / half_step).max().item<double>(), 1.001);
    return;
  }
  // Normal numbers in 4 bits: the best scale for 64 of them leaves less than what dividing by the largest
  // does.
  const at::Tensor groups = whole_groups(weight.to(at::kDouble)).view({50, -1, kLinearGroup});
  const at::Tensor step = std::get<0>(groups.abs().max(2, true)) / 7;
  const at::Tensor plain = ((groups / step).round() * step).view({50, -1}).narrow(1, 0, 130);
  const auto squares = [](const at::Tensor& t) { return t.square().sum().item<double>(); };
  EXPECT_LT(squares(error), 0.9 * squares(plain - weight.to(at::kDouble)));
  EXPECT_LT(squares(error), 0.012 * squares(weight.to(at::kDouble)));
}

// The largest sums there are: every product has the same sign and both factors their largest size.
TEST_P(LinearIntegersTest, NoSumOverflows) {
  for (const int64_t in : {1, 64, 516, 2816, 131072}) {
    SCOPED_TRACE(in);
    const at::Tensor x = at::full({2, in}, 3.0, at::kBFloat16);
    x[1].neg_();
    const at::Tensor weight = packed(at::full({17, in}, -0.5, at::kFloat));
    const at::Tensor result = linear(x, weight, 17).to(at::kDouble) / (1.5 * static_cast<double>(in));
    // The scale of a group of 4 bits and the result are bf16.
    EXPECT_LE((result[0] + 1).abs().max().item<double>(), 1.0 / 128) << result[0][0].item<double>();
    EXPECT_LE((result[1] - 1).abs().max().item<double>(), 1.0 / 128) << result[1][0].item<double>();
  }
}

TEST_P(LinearIntegersTest, EqualBitsForAllInstructionSets) {
  for (int trial = 0; trial < 40; ++trial) {
    const int64_t in = pick(rng_, 1, 400), out = pick(rng_, 1, 200);
    const at::Tensor x = rows(pick(rng_, 1, 30), in) * std::pow(10.0, pick(rng_, -6, 6));
    const at::Tensor weight = packed(weights(out, in));
    const at::Tensor result = linear(x, weight, out);
    limit_isa(Isa::kPortable);
    EXPECT_TRUE(same_bits(linear(x, weight, out), result)) << "in " << in << ", out " << out;
    limit_isa(std::get<0>(GetParam()));
  }
}

TEST_P(LinearIntegersTest, RowsAndThreadsDoNotChangeBits) {
  for (const auto& [in, out] : {std::pair<int64_t, int64_t>{192, 1000}, {333, 129}, {1025, 48}}) {
    const at::Tensor weight = packed(weights(out, in));
    const at::Tensor x = rows(300, in);
    at::set_num_threads(1);
    const at::Tensor all = linear(x, weight, out);
    for (int64_t count = 1; count <= 64; ++count) {
      at::set_num_threads(1 + static_cast<int>(count % 3));
      const int64_t first = 7 * count % 230;
      ASSERT_TRUE(same_bits(linear(x.narrow(0, first, count), weight, out), all.narrow(0, first, count)))
          << count << " rows, in " << in << ", out " << out;
    }
  }
}

TEST_P(LinearIntegersTest, RangesStayInTheirRow) {
  at::Tensor weight = weights(40, 37);
  weight[5].mul_(1e4);
  weight[6].zero_();
  weight[7][3] = kInfinity;
  const at::Tensor stored = packed(weight);
  at::Tensor x = rows(7, 37);
  const at::Tensor clean = linear(x, stored, 40);
  x[1][36] = kNan;
  x[2].mul_(1e20);
  x[3][0] = -kInfinity;
  x[4].zero_();
  x[5].mul_(1e-38);
  const at::Tensor result = linear(x, stored, 40);
  for (const int64_t row : {0, 6}) EXPECT_TRUE(same_bits(result[row], clean[row]));
  EXPECT_TRUE(result[1].isnan().all().item<bool>());
  EXPECT_TRUE(result[3].isnan().all().item<bool>());
  EXPECT_TRUE(result.select(1, 7).isnan().all().item<bool>());
  EXPECT_EQ(result[0][6].item<float>(), 0);
  const auto others = [](const at::Tensor& row) { return row.narrow(0, 8, 32); };
  EXPECT_EQ(others(result[4]).abs().max().item<float>(), 0);
  EXPECT_LT(others(result[5]).abs().max().item<float>(), 1e-30F);
  EXPECT_TRUE(others(result[2]).isfinite().all().item<bool>());
}

TEST_P(LinearIntegersTest, LeadingDimensionsAreRows) {
  const at::Tensor weight = packed(weights(24, 9));
  const at::Tensor x = rows(6, 9);
  const at::Tensor result = linear(x, weight, 24);
  EXPECT_TRUE(same_bits(linear(x.view({2, 3, 9}), weight, 24), result.view({2, 3, 24})));
  EXPECT_TRUE(same_bits(linear(x[4], weight, 24), result[4]));
  EXPECT_EQ(linear(x.narrow(0, 0, 0), weight, 24).sizes(), at::IntArrayRef({0, 24}));
}

TEST_P(LinearIntegersTest, WeightsArePackedInThePrecisionThatIsAskedFor) {
  const at::Tensor weight = weights(20, 70);
  const at::Tensor expected = packed(weight);
  EXPECT_TRUE(same_bits(pack_linear_bits(weight, bits()), expected));
  const at::Tensor stored = round_linear(weight, bits());
  for (const int64_t other : {4, 8, 16}) {  // what is stored rounded stays so
    EXPECT_TRUE(same_bits(pack_linear_bits(stored, other), expected));
  }
  EXPECT_TRUE(same_bits(pack_linear_bits(weight, 16), pack_linear(weight)));
  EXPECT_EQ(pack_linear(weight).scalar_type(), weight.scalar_type());
  EXPECT_TRUE(same_bits(pack_linear_int8(weight), pack_linear(round_linear(weight, 8))));
}

TEST(LinearIntegersErrors, NameWhatIsWrong) {
  const at::Tensor weight = at::zeros({20, 7});
  const at::Tensor packed = pack_linear(round_linear(weight, 8));
  const at::Tensor x = at::zeros({2, 7}, at::kBFloat16);
  EXPECT_THAT(message_of([&] { round_linear(at::zeros({4}), 8); }), HasSubstr("expected [out, in]"));
  EXPECT_THAT(message_of([&] { round_linear(at::zeros({4, 0}), 8); }), HasSubstr("no empty dimension"));
  EXPECT_THAT(message_of([&] { round_linear(weight, 5); }), HasSubstr("got 5 bits, expected 8 or 4"));
  EXPECT_THAT(message_of([&] { round_linear(weight.to(at::kHalf), 8); }), HasSubstr("weight has dtype Half"));
  EXPECT_THAT(message_of([&] {
                round_linear(at::zeros({1, (1 << 20) + 1}), 8);
              }),
              HasSubstr("at most 1048576 input features"));
  EXPECT_THAT(message_of([&] {
                pack_linear(at::zeros({4, 35}, at::kByte));
              }),
              HasSubstr("expected what round_linear gives"));
  EXPECT_THAT(message_of([&] { linear(x.to(at::kFloat), packed, 20); }),
              HasSubstr("linear: x has dtype Float, expected BFloat16"));
  EXPECT_THAT(message_of([&] {
                linear(at::zeros({2, 90}, at::kBFloat16), packed, 20);
              }),
              HasSubstr("weight has shape [2, 68, 16], expected [2, 132, 16]"));
  EXPECT_THAT(message_of([&] { linear(x, packed, 33); }), HasSubstr("expected [3, 68, 16]"));
  EXPECT_THAT(message_of([&] { linear(x, packed, 0); }), HasSubstr("out_features is 0"));
  EXPECT_THAT(message_of([&] { linear(x, packed[0], 16); }), HasSubstr("weight has shape [68, 16]"));
  EXPECT_THAT(message_of([&] {
                linear(at::zeros({7, 2}, at::kBFloat16).t(), packed, 20);
              }),
              HasSubstr("expected a contiguous tensor"));
}

}  // namespace
}  // namespace lamplighter::test

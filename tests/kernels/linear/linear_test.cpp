#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/kernels/common/kernel_test.h"
#include "tests/kernels/common/operators.h"

namespace lamplighter::test {
namespace {

using ::testing::HasSubstr;

// Largest |result - x W^T| over the bound that `in` fp32 roundings of sum |x w| and one rounding to the dtype
// allow.
double error_ratio(const at::Tensor& result, const at::Tensor& x, const at::Tensor& weight) {
  const at::Tensor wide_x = x.to(at::kDouble);
  const at::Tensor wide_weight = weight.to(at::kDouble);
  const at::Tensor exact = at::matmul(wide_x, wide_weight.t());
  const at::Tensor magnitude = at::matmul(wide_x.abs(), wide_weight.abs().t());
  const double fp32 = std::numeric_limits<float>::epsilon();
  const double rounding = result.scalar_type() == at::kBFloat16 ? 1.0 / 256 : fp32;
  const at::Tensor bound =
      exact.abs() * rounding + magnitude * (fp32 * static_cast<double>(x.size(-1))) + 1e-30;
  return ((result.to(at::kDouble) - exact).abs() / bound).max().item<double>();
}

class LinearTest : public KernelTest {
 protected:
  void TearDown() override {
    at::set_num_threads(1);
    KernelTest::TearDown();
  }
  at::Tensor random(at::IntArrayRef shape) { return random_tensor(rng_, shape, dtype()); }
};

INSTANTIATE_TEST_SUITE_P(Kernels, LinearTest, all_cases(), case_name);
INSTANTIATE_TEST_SUITE_P(Tiles, LinearTest, ::testing::Values(KernelCase{Isa::kAmx, at::kBFloat16}),
                         case_name);

TEST_P(LinearTest, RandomShapesMatchDoublePrecision) {
  for (int trial = 0; trial < 60; ++trial) {
    const int64_t rows = trial < 40 ? trial + 1 : pick(rng_, 1, 64);
    const int64_t in = trial % 3 == 0 ? pick(rng_, 1, 40) : pick(rng_, 1, 500);
    const int64_t out = trial % 4 == 0 ? pick(rng_, 1, 20) : pick(rng_, 1, 300);
    SCOPED_TRACE(testing::Message() << rows << " rows, in " << in << ", out " << out);
    const at::Tensor x = random({rows, in});
    const at::Tensor weight = random({out, in});
    const at::Tensor packed = pack_linear(weight);
    ASSERT_EQ(packed.sizes(), at::IntArrayRef({(out + 15) / 16, in, 16}));
    const at::Tensor result = linear(x, packed, out);
    ASSERT_EQ(result.sizes(), at::IntArrayRef({rows, out}));
    ASSERT_EQ(result.scalar_type(), x.scalar_type());
    ASSERT_LE(error_ratio(result, x, weight), 1.0);
  }
}

TEST_P(LinearTest, ManyRowsAndWideInputsMatchDoublePrecision) {
  for (const auto& [rows, in, out] : {std::tuple<int64_t, int64_t, int64_t>{301, 1030, 70}, {29, 8209, 33}}) {
    const at::Tensor x = random({rows, in});
    const at::Tensor weight = random({out, in});
    EXPECT_LE(error_ratio(linear(x, pack_linear(weight), out), x, weight), 1.0);
  }
}

TEST_P(LinearTest, RowsDoNotDependOnOtherRows) {
  for (const auto& [in, out] : {std::pair<int64_t, int64_t>{192, 200}, {333, 129}, {1025, 48}}) {
    const at::Tensor packed = pack_linear(random({out, in}));
    const at::Tensor x = random({300, in});
    const at::Tensor all = linear(x, packed, out);
    for (int64_t rows = 1; rows <= 40; ++rows) {
      SCOPED_TRACE(testing::Message() << rows << " rows, in " << in << ", out " << out);
      const int64_t first = 7 * rows % 250;
      const at::Tensor some = linear(x.narrow(0, first, rows), packed, out);
      ASSERT_TRUE(same_bits(some, all.narrow(0, first, rows)));
    }
  }
}

TEST_P(LinearTest, ThreadsDoNotChangeBits) {
  const int64_t out = 1000;
  const at::Tensor packed = pack_linear(random({out, 517}));
  for (const int64_t rows : {1, 5, 26, 130}) {
    const at::Tensor x = random({rows, 517});
    at::set_num_threads(1);
    const at::Tensor serial = linear(x, packed, out);
    at::set_num_threads(2);
    EXPECT_TRUE(same_bits(linear(x, packed, out), serial)) << rows << " rows";
    at::set_num_threads(3);
    EXPECT_TRUE(same_bits(linear(x, packed, out), serial)) << rows << " rows";
  }
}

TEST_P(LinearTest, LeadingDimensionsAreRows) {
  const at::Tensor packed = pack_linear(random({24, 10}));
  const at::Tensor x = random({2, 3, 10});
  const at::Tensor result = linear(x, packed, 24);
  EXPECT_EQ(result.sizes(), at::IntArrayRef({2, 3, 24}));
  EXPECT_TRUE(same_bits(result.view({6, 24}), linear(x.view({6, 10}), packed, 24)));
  EXPECT_EQ(linear(x.view({60}).narrow(0, 0, 10), packed, 24).sizes(), at::IntArrayRef({24}));
  EXPECT_EQ(linear(x.narrow(0, 0, 0), packed, 24).sizes(), at::IntArrayRef({0, 3, 24}));
}

TEST_P(LinearTest, InfinityAndNanStayInTheirRow) {
  const at::Tensor packed = pack_linear(random({40, 37}));
  at::Tensor x = random({5, 37});
  const at::Tensor clean = linear(x, packed, 40);
  x[1][36] = std::numeric_limits<float>::quiet_NaN();
  x[3][0] = std::numeric_limits<float>::infinity();
  const at::Tensor result = linear(x, packed, 40);
  for (const int64_t row : {0, 2, 4}) EXPECT_TRUE(same_bits(result[row], clean[row]));
  EXPECT_TRUE(result[1].isnan().all().item<bool>());
  EXPECT_TRUE(result[3].isinf().all().item<bool>());
}

TEST_P(LinearTest, PlainWeightsGiveTheSameProduct) {
  const at::Tensor x = random({3, 50});
  const at::Tensor weight = random({21, 50});
  EXPECT_LE(error_ratio(linear(x, weight, 21), x, weight), 1.0);
}

TEST_P(LinearTest, TransposedWeightsCanBePacked) {
  const at::Tensor weight = random({30, 20});
  EXPECT_TRUE(same_bits(pack_linear(weight.t()), pack_linear(weight.t().contiguous())));
}

TEST(LinearErrors, NameWhatIsWrong) {
  const at::Tensor weight = at::zeros({20, 8});
  const at::Tensor packed = pack_linear(weight);
  const at::Tensor x = at::zeros({2, 8});
  EXPECT_THAT(message_of([&] { pack_linear(at::zeros({4})); }), HasSubstr("expected [out, in]"));
  EXPECT_THAT(message_of([&] { pack_linear(at::zeros({4, 0})); }), HasSubstr("no empty dimension"));
  EXPECT_THAT(message_of([&] { pack_linear(weight.to(at::kHalf)); }),
              HasSubstr("expected float32 or bfloat16"));
  EXPECT_THAT(message_of([&] {
                linear(at::zeros({2, 9}), packed, 20);
              }),
              HasSubstr("x has shape [2, 9], expected [..., 8]"));
  EXPECT_THAT(message_of([&] { linear(x.to(at::kBFloat16), packed, 20); }),
              HasSubstr("weight has dtype Float, expected BFloat16"));
  EXPECT_THAT(message_of([&] { linear(x, packed, 33); }),
              HasSubstr("weight has shape [2, 8, 16], expected [3, -1, 16]"));
  EXPECT_THAT(message_of([&] { linear(x, packed, 16); }), HasSubstr("expected [1, -1, 16]"));
  EXPECT_THAT(message_of([&] { linear(x, weight, 19); }), HasSubstr("expected [19, -1]"));
  EXPECT_THAT(message_of([&] {
                linear(at::zeros({2, 0}), at::zeros({1, 0, 16}), 16);
              }),
              HasSubstr("weight has shape [1, 0, 16], expected no empty dimension"));
  EXPECT_THAT(message_of([&] { linear(x, packed, 0); }), HasSubstr("out_features is 0"));
  EXPECT_THAT(message_of([&] { linear(x, weight[0], 8); }), HasSubstr("weight has shape [8]"));
  EXPECT_THAT(message_of([&] { linear(x, at::zeros({2, 8, 8}), 16); }), HasSubstr("expected [1, -1, 16]"));
  EXPECT_THAT(message_of([&] {
                linear(at::zeros({8, 2}).t(), packed, 20);
              }),
              HasSubstr("expected a contiguous tensor"));
}

}  // namespace
}  // namespace lamplighter::test

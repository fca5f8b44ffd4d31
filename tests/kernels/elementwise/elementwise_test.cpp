#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/kernels/common/kernel_test.h"
#include "tests/kernels/common/operators.h"

namespace lamplighter::test {
namespace {

using ::testing::HasSubstr;

class ElementwiseTest : public KernelTest {
 protected:
  // Largest difference from `expected` in units of the last place of the larger value.
  double ulps(const at::Tensor& got, const at::Tensor& expected) const {
    const double unit = dtype() == at::kFloat ? 1.2e-7 : 7.8e-3;
    const at::Tensor a = got.to(at::kDouble);
    const at::Tensor b = expected.to(at::kDouble);
    return ((a - b).abs() / (b.abs() * unit + 1e-30)).max().item<double>();
  }
};

at::Tensor reference_norm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  const at::Tensor wide = x.to(at::kFloat);
  return (wide * at::rsqrt(wide.pow(2).mean(-1, true) + eps)).to(x.scalar_type()) * weight;
}

constexpr int64_t kWidths[] = {1, 2, 7, 16, 31, 64, 100, 192, 257, 1280};

TEST_P(ElementwiseTest, RmsNormFollowsTheOfficialRoundingOrder) {
  for (const int64_t width : kWidths) {
    const at::Tensor x = random_tensor(rng_, {3, pick(rng_, 1, 9), width}, dtype(), 3);
    const at::Tensor weight = random_tensor(rng_, {width}, dtype());
    const at::Tensor y = rms_norm(x, weight, 1e-5);
    EXPECT_EQ(y.sizes(), x.sizes());
    // The sum's order moves a value across a rounding border at most: one place before and one after the
    // weight.
    EXPECT_LE(ulps(y, reference_norm(x, weight, 1e-5)), dtype() == at::kFloat ? 8 : 2) << width;
  }
}

TEST_P(ElementwiseTest, AddRmsNormUpdatesTheResidual) {
  for (const int64_t width : kWidths) {
    at::Tensor residual = random_tensor(rng_, {2, 5, width}, dtype());
    const at::Tensor x = random_tensor(rng_, {2, 5, width}, dtype());
    const at::Tensor weight = random_tensor(rng_, {width}, dtype());
    const at::Tensor sum = residual + x;
    const at::Tensor kept = x.clone();
    const at::Tensor y = add_rms_norm(residual, x, weight, 1e-6);
    EXPECT_TRUE(same_bits(residual, sum)) << width;
    EXPECT_TRUE(same_bits(x, kept));
    EXPECT_TRUE(same_bits(y, rms_norm(sum, weight, 1e-6))) << width;
  }
}

TEST_P(ElementwiseTest, SiluMulMatchesTorch) {
  for (const int64_t width : kWidths) {
    const at::Tensor x = random_tensor(rng_, {pick(rng_, 1, 9), 2 * width}, dtype(), 8);
    const at::Tensor gate = x.narrow(-1, 0, width);
    const at::Tensor up = x.narrow(-1, width, width);
    EXPECT_LE(ulps(silu_mul(x), at::silu(gate) * up), dtype() == at::kFloat ? 8 : 2) << width;
  }
}

TEST_P(ElementwiseTest, SiluMulTakesExtremeGates) {
  const at::Tensor gate = at::tensor({-1e30F, -200.F, -88.F, 0.F, 88.F, 200.F, 1e30F}).view({1, 7});
  const at::Tensor x = at::cat({gate, at::full({1, 7}, 1.F)}, 1).to(dtype());
  const at::Tensor y = silu_mul(x).to(at::kFloat);
  const float* v = y.const_data_ptr<float>();
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(v[i], 0, 1e-30) << i;
  const at::Tensor wide = x.to(at::kFloat);
  for (int i = 4; i < 7; ++i) EXPECT_EQ(v[i], wide[0][i].item<float>()) << i;
}

TEST_P(ElementwiseTest, GeluMatchesTheExactForm) {
  const double unit = dtype() == at::kFloat ? 1.2e-7 : 4e-3;
  for (const int64_t width : kWidths) {
    const at::Tensor x = random_tensor(rng_, {pick(rng_, 1, 9), width}, dtype(), 8);
    const at::Tensor y = exact_gelu(x).to(at::kDouble), expected = at::gelu(x.to(at::kDouble));
    // 1 + erf loses digits where it is small; then one rounding.
    const at::Tensor allowed = 2.4e-7 * x.to(at::kDouble).abs() + unit * expected.abs();
    EXPECT_LE(((y - expected).abs() - allowed).max().item<double>(), 0) << width;
  }
  const at::Tensor far = at::tensor({-1e30F, -200.F, 0.F, 200.F, 1e30F}).to(dtype()).view({1, 5});
  EXPECT_TRUE(at::equal(exact_gelu(far), far.clamp_min(0)));
}

TEST_P(ElementwiseTest, NormHeadsNormsEveryHeadByItself) {
  const double unit = dtype() == at::kFloat ? 1.2e-7 : 7.8e-3;
  for (const int64_t size : {2, 7, 16, 48, 64, 128, 130}) {
    const int64_t heads = pick(rng_, 1, 5), normed = heads * size, rest = 9;
    // Means far from zero: the variance is that of the centred features.
    const at::Tensor x = random_tensor(rng_, {2, pick(rng_, 1, 4), normed + rest}, dtype()) + 5;
    const at::Tensor weight = random_tensor(rng_, {heads, size}, dtype(), 2);
    const at::Tensor bias = random_tensor(rng_, {heads, size}, dtype());
    const at::Tensor y = norm_heads(x, weight, bias, 1e-5);
    EXPECT_TRUE(same_bits(y.narrow(-1, normed, rest), x.narrow(-1, normed, rest)));

    const at::Tensor wide = x.narrow(-1, 0, normed).unflatten(-1, {heads, size}).to(at::kDouble);
    const at::Tensor centred = wide - wide.mean(-1, true);
    const at::Tensor scale = at::rsqrt(centred.pow(2).mean(-1, true) + 1e-5);
    const at::Tensor expected = centred * scale * weight + bias;
    const at::Tensor got = y.narrow(-1, 0, normed).unflatten(-1, {heads, size}).to(at::kDouble);
    // fp32 inside: the mean is off by a unit of what it is of, which the scale enlarges. Then two roundings.
    const at::Tensor inside = 1.2e-7 * (1 + wide.abs()) * scale * weight.abs();
    const at::Tensor outside = unit * (2 * (centred * scale * weight).abs() + bias.abs());
    EXPECT_LE(((got - expected).abs() - 2 * inside - outside).max().item<double>(), 0) << size;
  }
}

TEST_P(ElementwiseTest, RowsDoNotDependOnOtherRows) {
  for (const int64_t width : kWidths) {
    const at::Tensor x = random_tensor(rng_, {64, 2 * width}, dtype());
    const at::Tensor weight = random_tensor(rng_, {2 * width}, dtype());
    const at::Tensor normed = rms_norm(x, weight, 1e-5);
    const at::Tensor gated = silu_mul(x);
    const at::Tensor bent = exact_gelu(x);
    const at::Tensor heads = random_tensor(rng_, {2, width}, dtype());
    const at::Tensor by_head = norm_heads(x, heads, heads, 1e-5);
    for (int64_t r = 0; r < 64; r += 7) {
      const at::Tensor row = x.narrow(0, r, 1).clone();
      EXPECT_TRUE(same_bits(rms_norm(row, weight, 1e-5), normed.narrow(0, r, 1)));
      EXPECT_TRUE(same_bits(silu_mul(row), gated.narrow(0, r, 1)));
      EXPECT_TRUE(same_bits(exact_gelu(row), bent.narrow(0, r, 1)));
      EXPECT_TRUE(same_bits(norm_heads(row, heads, heads, 1e-5), by_head.narrow(0, r, 1)));
    }
  }
}

TEST_P(ElementwiseTest, ThreadsDoNotChangeBits) {
  const at::Tensor x = random_tensor(rng_, {256, 512}, dtype());
  const at::Tensor weight = random_tensor(rng_, {512}, dtype());
  at::set_num_threads(1);
  const at::Tensor normed = rms_norm(x, weight, 1e-5);
  const at::Tensor gated = silu_mul(x);
  at::set_num_threads(2);
  EXPECT_TRUE(same_bits(rms_norm(x, weight, 1e-5), normed));
  EXPECT_TRUE(same_bits(silu_mul(x), gated));
  at::set_num_threads(1);
}

TEST_P(ElementwiseTest, TakesNoRows) {
  const at::Tensor x = at::empty({0, 8}, dtype());
  EXPECT_EQ(rms_norm(x, at::empty({8}, dtype()), 1e-5).sizes(), x.sizes());
  EXPECT_EQ(silu_mul(x).sizes(), (std::vector<int64_t>{0, 4}));
  EXPECT_EQ(exact_gelu(x).sizes(), x.sizes());
}

INSTANTIATE_TEST_SUITE_P(All, ElementwiseTest, all_cases(), case_name);

TEST(ElementwiseErrors, NameOperatorAndArgument) {
  const at::Tensor x = at::full({2, 8}, 1.F);
  const at::Tensor weight = at::full({8}, 1.F);
  at::Tensor residual = at::full({2, 4}, 1.F);
  EXPECT_THAT(message_of([&] { rms_norm(x, at::full({4}, 1.F), 1e-5); }),
              HasSubstr("rms_norm: weight has shape [4], expected [8]"));
  EXPECT_THAT(message_of([&] { rms_norm(x, weight.to(at::kBFloat16), 1e-5); }),
              HasSubstr("rms_norm: weight has dtype BFloat16, expected Float"));
  EXPECT_THAT(message_of([&] { rms_norm(x.t(), at::full({2}, 1.F), 1e-5); }),
              HasSubstr("expected a contiguous tensor"));
  EXPECT_THAT(message_of([&] { rms_norm(x.to(at::kDouble), weight, 1e-5); }),
              HasSubstr("rms_norm: x has dtype Double, expected float32 or bfloat16"));
  EXPECT_THAT(message_of([&] { add_rms_norm(residual, x, weight, 1e-5); }),
              HasSubstr("add_rms_norm: residual has shape [2, 4], expected that of x, [2, 8]"));
  EXPECT_THAT(
      message_of([&] {
        norm_heads(x, at::full({3, 4}, 1.F), at::full({3, 4}, 1.F), 1e-5);
      }),
      HasSubstr("norm_heads: values have shape [2, 8], expected [..., N] with N >= 12 for a weight of "
                "shape [3, 4]"));
  EXPECT_THAT(message_of([&] {
                norm_heads(x, at::full({2, 4}, 1.F), weight, 1e-5);
              }),
              HasSubstr("norm_heads: bias has shape [8], expected [2, 4]"));
  EXPECT_THAT(message_of([&] {
                silu_mul(at::full({2, 7}, 1.F));
              }),
              HasSubstr("silu_mul: gate_up has shape [2, 7], expected [..., 2F]"));
}

}  // namespace
}  // namespace lamplighter::test

#include "tests/kernels/common/emulated_device.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/matmul.h>
#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "kernels/linear/linear_cuda.h"
#include "tests/kernels/common/operators.h"

// CUDA's products of weights in 8 and 4 bits on an emulated device.
namespace lamplighter::test {
namespace {

struct Shape {
  int64_t rows, in, out;
};

class LinearEmulatedTest : public ::testing::TestWithParam<std::tuple<int, Shape>> {
 protected:
  void TearDown() override { emulated::shuffle() = 0; }

  int bits() const { return std::get<0>(GetParam()); }
  Shape shape() const { return std::get<1>(GetParam()); }

  at::Tensor packed(const at::Tensor& weight) const { return pack_linear_bits(weight, bits()); }

  LinearArgs arguments(const at::Tensor& weight, int64_t in, int64_t out, at::Tensor& result) const {
    LinearArgs args{};
    args.weight = weight.const_data_ptr();
    args.out = result.mutable_data_ptr();
    args.in = in;
    args.out_features = out;
    args.format = bits() == 8 ? LinearFormat::kInt8 : LinearFormat::kInt4;
    return args;
  }

  template <int kBits, int kSteps>
  static void launch(const LinearArgs& args, unsigned blocks) {
    const auto kernel = args.in % kLinearGroup == 0 ? rounded_linear_kernel<kBits, true, kSteps>
                                                    : rounded_linear_kernel<kBits, false, kSteps>;
    emulated::launch({blocks}, {kRoundedThreads}, 0, [&] { kernel(args); });
  }

  template <int kBits>
  static void launch(const LinearArgs& args, unsigned blocks) {
    if (args.rows <= 8) return launch<kBits, 1>(args, blocks);
    if (args.rows <= 16) return launch<kBits, 2>(args, blocks);
    launch<kBits, 4>(args, blocks);
  }

  at::Tensor product(const at::Tensor& x, const at::Tensor& weight, int64_t out) const {
    at::Tensor result = at::full({x.size(0), out}, std::nan(""), x.options());
    LinearArgs args = arguments(weight, x.size(1), out, result);
    args.x = x.const_data_ptr();
    args.rows = x.size(0);
    const auto blocks = static_cast<unsigned>(weight.size(0));
    bits() == 8 ? launch<8>(args, blocks) : launch<4>(args, blocks);
    return result;
  }

  at::Tensor expanded(const at::Tensor& weight, int64_t in, int64_t out) const {
    at::Tensor result = at::full({out, in}, std::nan(""), at::kBFloat16);
    const LinearArgs args = arguments(weight, in, out, result);
    const auto kernel = bits() == 8 ? expand_rounded_kernel<8> : expand_rounded_kernel<4>;
    emulated::launch({static_cast<unsigned>(weight.size(0))}, {kRoundedThreads}, 0, [&] { kernel(args); });
    return result;
  }

  at::Tensor random(at::IntArrayRef sizes) { return random_tensor(rng_, sizes, at::kBFloat16, 1); }

  std::mt19937 rng_{5};
};

TEST_P(LinearEmulatedTest, IsTheProductOfTheRoundedWeights) {
  const auto [rows, in, out] = shape();
  const at::Tensor plain = random({out, in}), x = random({rows, in});
  const at::Tensor weight = packed(plain);
  const at::Tensor meant = expanded(weight, in, out);
  const double step = bits() == 8 ? 0.012 : 0.25;  // of the furthest weights of a row
  EXPECT_LE((meant - plain).abs().max().item<double>(), step * plain.abs().max().item<double>());
  const at::Tensor expected = at::matmul(x.to(at::kDouble), meant.to(at::kDouble).t());
  for (unsigned seed : {0U, 7U}) {
    emulated::shuffle() = seed;
    const at::Tensor got = product(x, weight, out).to(at::kDouble);
    // The result is rounded to bf16, and so are the weights in `expected`, whose products are near 1.
    const double weights = 0.01 * std::sqrt(static_cast<double>(in));
    EXPECT_LE(((got - expected).abs() - expected.abs() * 0x1p-8).max().item<double>(), weights);
  }
}

TEST_P(LinearEmulatedTest, ARowsBitsDependOnNoOtherRow) {
  const auto [rows, in, out] = shape();
  const at::Tensor x = random({rows, in}), weight = packed(random({out, in}));
  const at::Tensor together = product(x, weight, out);
  for (const int64_t row : {int64_t{0}, rows / 2, rows - 1}) {
    const at::Tensor alone = product(x.slice(0, row, row + 1).contiguous(), weight, out);
    EXPECT_TRUE(at::equal(alone[0], together[row])) << row;
  }
}

TEST_P(LinearEmulatedTest, NumbersThatAreNotFiniteStayInTheirRow) {
  const auto [rows, in, out] = shape();
  if (rows < 2) GTEST_SKIP() << "needs two rows";
  at::Tensor x = random({rows, in});
  const at::Tensor weight = packed(random({out, in}));
  const at::Tensor before = product(x, weight, out);
  x[0][in - 1] = std::nan("");
  const at::Tensor after = product(x, weight, out);
  EXPECT_TRUE(after[0].isnan().all().item<bool>());
  EXPECT_TRUE(at::equal(after.slice(0, 1), before.slice(0, 1)));
}

INSTANTIATE_TEST_SUITE_P(Bits, LinearEmulatedTest,
                         ::testing::Combine(::testing::Values(8, 4),
                                            ::testing::Values(Shape{1, 64, 16}, Shape{2, 192, 40},
                                                              Shape{8, 1024, 32}, Shape{11, 100, 17},
                                                              Shape{16, 33, 5}, Shape{32, 704, 48})),
                         [](const auto& named) {
                           const Shape& shape = std::get<1>(named.param);
                           return "int" + std::to_string(std::get<0>(named.param)) + "_" +
                                  std::to_string(shape.rows) + "x" + std::to_string(shape.in) + "x" +
                                  std::to_string(shape.out);
                         });

}  // namespace
}  // namespace lamplighter::test

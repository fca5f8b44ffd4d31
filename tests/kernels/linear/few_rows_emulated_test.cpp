#include "tests/kernels/common/emulated_device.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/silu.h>
#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "kernels/linear/few_rows_cuda.h"
#include "tests/kernels/common/operators.h"

// CUDA's products of few rows on an emulated device.
namespace lamplighter::test {
namespace {

struct Shape {
  int64_t rows, in, out;
};

constexpr double kEps = 1e-5;

class FewRowsEmulatedTest : public ::testing::TestWithParam<std::tuple<FewRowsForm, Shape>> {
 protected:
  void TearDown() override {
    emulated::shuffle() = 0;
    emulated::at_wait() = nullptr;
  }

  FewRowsForm form() const { return std::get<0>(GetParam()); }
  Shape shape() const { return std::get<1>(GetParam()); }
  bool gated() const { return form() == FewRowsForm::kGated; }
  bool normed() const { return gated() || form() == FewRowsForm::kNorm; }
  int64_t width() const { return gated() ? shape().out / 2 : shape().out; }

  at::Tensor random(at::IntArrayRef sizes, float spread = 1) {
    return random_tensor(rng_, sizes, at::kBFloat16, spread);
  }

  template <FewRowsForm kForm>
  static void launch(const FewRowsArgs& args) {
    const auto kernel = few_rows_kernel_for<kForm>(args.rows);
    const auto blocks = static_cast<unsigned>(args.out_features / few_rows_block(args));
    emulated::launch({blocks}, {FewRowsPlan<kForm, 1>::kThreads}, 0, [&] { kernel(args); });
  }

  // `old`: what kAdd adds to.
  at::Tensor product(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& norm,
                     const at::Tensor& old) const {
    at::Tensor out = form() == FewRowsForm::kAdd
                         ? old.clone()
                         : at::full({x.size(0), width()}, std::nan(""), at::kBFloat16);
    FewRowsArgs args{};
    args.x = x.const_data_ptr();
    args.weight = weight.const_data_ptr();
    args.norm = normed() ? norm.const_data_ptr() : nullptr;
    args.out = out.mutable_data_ptr();
    args.rows = x.size(0);
    args.in = x.size(1);
    args.out_features = weight.size(0);
    args.eps = static_cast<float>(kEps);
    args.form = form();
    EXPECT_TRUE(takes_few_rows(args));
    switch (form()) {
      case FewRowsForm::kPlain:
        launch<FewRowsForm::kPlain>(args);
        break;
      case FewRowsForm::kAdd:
        launch<FewRowsForm::kAdd>(args);
        break;
      case FewRowsForm::kNorm:
        launch<FewRowsForm::kNorm>(args);
        break;
      case FewRowsForm::kGated:
        launch<FewRowsForm::kGated>(args);
        break;
    }
    return out;
  }

  // The same in double precision.
  at::Tensor expected(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& norm,
                      const at::Tensor& old) const {
    at::Tensor rows = x.to(at::kDouble);
    if (normed()) {
      rows = rows * at::rsqrt(rows.square().mean(1, true) + kEps) * norm.to(at::kDouble);
    }
    const at::Tensor sums = at::matmul(rows, weight.to(at::kDouble).t());
    if (form() == FewRowsForm::kAdd) return sums + old.to(at::kDouble);
    return gated() ? at::silu(sums.slice(1, 0, width())) * sums.slice(1, width()) : sums;
  }

  std::mt19937 rng_{5};
};

TEST_P(FewRowsEmulatedTest, IsTheProduct) {
  const auto [rows, in, out] = shape();
  const at::Tensor x = random({rows, in}), norm = random({in});
  const at::Tensor weight = random({out, in}, 1 / std::sqrt(static_cast<float>(in)));
  const at::Tensor old = random({rows, width()});
  const at::Tensor reference = expected(x, weight, norm, old);
  for (unsigned seed : {0U, 7U}) {
    emulated::shuffle() = seed;
    const at::Tensor got = product(x, weight, norm, old).to(at::kDouble);
    // Results, of a gated product its factors too, are rounded to bf16, and so are normed rows.
    const double unit = gated() ? 0x1p-6 : 0x1p-7;
    EXPECT_LE(((got - reference).abs() - reference.abs() * unit).max().item<double>(), 0.02);
  }
}

TEST_P(FewRowsEmulatedTest, ARowsBitsDependOnNoOtherRow) {
  const auto [rows, in, out] = shape();
  const at::Tensor x = random({rows, in}), norm = random({in}), weight = random({out, in});
  const at::Tensor old = random({rows, width()});
  const at::Tensor together = product(x, weight, norm, old);
  for (const int64_t row : {int64_t{0}, rows / 2, rows - 1}) {
    const auto only = [=](const at::Tensor& of) { return of.slice(0, row, row + 1).contiguous(); };
    EXPECT_TRUE(at::equal(product(only(x), weight, norm, only(old))[0], together[row])) << row;
  }
}

TEST_P(FewRowsEmulatedTest, NumbersThatAreNotFiniteStayInTheirRow) {
  const auto [rows, in, out] = shape();
  if (rows < 2) GTEST_SKIP() << "needs two rows";
  at::Tensor x = random({rows, in});
  const at::Tensor norm = random({in}), weight = random({out, in}), old = random({rows, width()});
  const at::Tensor before = product(x, weight, norm, old);
  x[rows - 1][in - 1] = std::nan("");
  const at::Tensor after = product(x, weight, norm, old);
  EXPECT_TRUE(after[rows - 1].isnan().all().item<bool>());
  EXPECT_TRUE(at::equal(after.slice(0, 0, rows - 1), before.slice(0, 0, rows - 1)));
}

std::string name_of(const ::testing::TestParamInfo<std::tuple<FewRowsForm, Shape>>& test) {
  const char* const names[] = {"plain", "add", "norm", "gated"};
  const Shape& shape = std::get<1>(test.param);
  return std::string(names[static_cast<int>(std::get<0>(test.param))]) + "_" + std::to_string(shape.rows) +
         "_" + std::to_string(shape.in);
}

// Weights alone are read before the kernels in front are done.
TEST_P(FewRowsEmulatedTest, WaitsForWhatOtherKernelsWrite) {
  const auto [rows, in, out] = shape();
  const at::Tensor x = random({rows, in}), norm = random({in}), weight = random({out, in});
  const at::Tensor old = random({rows, width()});
  const at::Tensor expected_out = product(x, weight, norm, old);
  const at::Tensor late = at::full_like(x, std::nan(""));
  emulated::at_wait() = [&] { std::memcpy(late.mutable_data_ptr(), x.const_data_ptr(), x.nbytes()); };
  EXPECT_TRUE(at::equal(product(late, weight, norm, old), expected_out));
}

// Inputs of one group, fewer groups than warps, several rounds of all warps, an uneven last one.
INSTANTIATE_TEST_SUITE_P(Forms, FewRowsEmulatedTest,
                         ::testing::Combine(::testing::Values(FewRowsForm::kPlain, FewRowsForm::kAdd,
                                                              FewRowsForm::kNorm, FewRowsForm::kGated),
                                            ::testing::Values(Shape{1, 32, 32}, Shape{2, 192, 64},
                                                              Shape{8, 1280, 32}, Shape{9, 3456, 32},
                                                              Shape{16, 4128, 32}, Shape{17, 1280, 64},
                                                              Shape{32, 3456, 32})),
                         name_of);

TEST(FewRows, OtherSizesAreLeftToOthers) {
  FewRowsArgs args{};
  args.rows = 2;
  args.in = 64;
  args.out_features = 48;
  EXPECT_TRUE(takes_few_rows(args));
  const auto changed = [&](auto change) {
    FewRowsArgs other = args;
    change(other);
    return takes_few_rows(other);
  };
  EXPECT_TRUE(changed([](FewRowsArgs& a) { a.rows = kMoreRows; }));
  EXPECT_FALSE(changed([](FewRowsArgs& a) { a.rows = kMoreRows + 1; }));
  const auto large = [](FewRowsArgs& a) { a.in = kMoreRowsWeights / 32 * 32, a.rows = kFewRows; };
  EXPECT_TRUE(changed(large));
  EXPECT_FALSE(changed([&](FewRowsArgs& a) { large(a), ++a.rows; }));
  EXPECT_FALSE(changed([](FewRowsArgs& a) { a.form = FewRowsForm::kNorm, a.rows = kMoreRows; }));
  EXPECT_FALSE(changed([](FewRowsArgs& a) { a.in = 48; }));
  EXPECT_FALSE(changed([](FewRowsArgs& a) { a.out_features = 40; }));
  EXPECT_FALSE(changed([](FewRowsArgs& a) { a.form = FewRowsForm::kGated; }));
  EXPECT_FALSE(changed([](FewRowsArgs& a) { a.x = reinterpret_cast<const void*>(uintptr_t{8}); }));
}

}  // namespace
}  // namespace lamplighter::test

#include <ATen/Context.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/matmul.h>
#include <gtest/gtest.h>

#include "kernels/ops.h"
#include "tests/kernels/attend/attend_problem.h"
#include "tests/kernels/common/operators.h"
#include "tests/kernels/continuous/denoise_problem.h"

// The CUDA kernels against the CPU kernels in fp32; skipped where no CUDA device is found.
namespace lamplighter::test {
namespace {

class CudaTwinTest : public ::testing::TestWithParam<at::ScalarType> {
 protected:
  void SetUp() override {
    if (!at::globalContext().hasCUDA()) GTEST_SKIP() << "no CUDA device";
  }

  at::ScalarType dtype() const { return GetParam(); }

  // Values that the dtype holds exactly, as fp32 on the CPU.
  at::Tensor values(at::IntArrayRef sizes, float spread = 1) {
    return random_tensor(rng_, sizes, dtype(), spread).to(at::kFloat);
  }

  at::Tensor on_device(const at::Tensor& tensor) const {
    const at::Tensor cast = tensor.is_floating_point() ? tensor.to(dtype()) : tensor;
    return cast.to(at::kCUDA);
  }

  // |got - expected| <= 4 units in the last place of |expected| + scale.
  void expect_close(const at::Tensor& got, const at::Tensor& expected, double scale = 0.05) const {
    const double unit = dtype() == at::kFloat ? 1.2e-7 : dtype() == at::kHalf ? 9.8e-4 : 7.8e-3;
    ASSERT_EQ(got.sizes(), expected.sizes());
    ASSERT_EQ(got.scalar_type(), dtype());
    const at::Tensor a = got.cpu().to(at::kDouble);
    const at::Tensor b = expected.to(at::kDouble);
    const double excess = ((a - b).abs() - (b.abs() + scale) * 4 * unit).max().item<double>();
    EXPECT_LE(excess, 0);
  }

  std::mt19937 rng_{7};
};

constexpr int64_t kWidths[] = {1, 7, 64, 100, 1280, 4096};

TEST_P(CudaTwinTest, Elementwise) {
  for (const int64_t width : kWidths) {
    const at::Tensor x = values({3, 5, width}, 2);
    const at::Tensor weight = values({width});
    expect_close(rms_norm(on_device(x), on_device(weight), 1e-5), rms_norm(x, weight, 1e-5));
    const at::Tensor start = values({3, 5, width});
    at::Tensor residual = on_device(start).clone();
    const at::Tensor normed = add_rms_norm(residual, on_device(x), on_device(weight), 1e-5);
    expect_close(residual, start + x);
    const at::Tensor rounded = (start + x).to(dtype()).to(at::kFloat);
    expect_close(normed, rms_norm(rounded, weight, 1e-5));
    const at::Tensor gate_up = values({2, 3, 2 * width}, 3);
    expect_close(silu_mul(on_device(gate_up)), silu_mul(gate_up));
    // 1 + erf loses what is small beside 1: the last unit of erf counts |x| / 2 of it, on any device.
    expect_close(exact_gelu(on_device(gate_up)), exact_gelu(gate_up), 1);
    const at::Tensor heads = values({2, 3, 4 * width}, 3), heads_weight = values({3, width});
    const at::Tensor bias = values({3, width});
    expect_close(norm_heads(on_device(heads), on_device(heads_weight), on_device(bias), 1e-5),
                 norm_heads(heads, heads_weight, bias, 1e-5), 2);
  }
}

// With what stands in front of products and behind them: few rows in one kernel, many in several.
TEST_P(CudaTwinTest, FusedLinear) {
  for (const auto& [rows, in, out] :
       {std::tuple{1, 64, 32}, std::tuple{2, 1280, 3840}, std::tuple{7, 200, 48}, std::tuple{16, 3456, 1280},
        std::tuple{40, 1280, 64}}) {
    const float spread = 1 / std::sqrt(static_cast<float>(in));
    const at::Tensor x = values({2, rows, in}), norm = values({in}), weight = values({out, in}, spread);
    const at::Tensor old = values({2, rows, out});
    at::Tensor residual = on_device(old).clone(), expected = old.clone();
    add_linear(residual, on_device(x), on_device(weight));
    add_linear(expected, x, weight);
    const double scale = dtype() == at::kFloat ? 10 : 2;  // sums of thousands
    expect_close(residual, expected, scale);
    for (const bool gated : {false, true}) {
      expect_close(norm_linear(on_device(x), on_device(norm), 1e-5, on_device(weight), out, gated),
                   norm_linear(x, norm, 1e-5, weight, out, gated), scale);
    }
  }
}

TEST_P(CudaTwinTest, Linear) {
  for (const int64_t rows : {1, 2, 7, 64}) {
    const at::Tensor x = values({rows, 200});
    const at::Tensor weight = values({96, 200}, 0.1F);
    const at::Tensor packed = call<at::Tensor, const at::Tensor&>("pack_linear", on_device(weight));
    const at::Tensor got = call<at::Tensor, const at::Tensor&, const at::Tensor&, int64_t>(
        "linear", on_device(x), packed, int64_t{96});
    expect_close(got, at::matmul(x, weight.t()), dtype() == at::kFloat ? 10 : 0.05);
  }
}

// Rows stay bf16 there, which the CPU rounds to integers: the rounded weights are what both mean.
TEST_P(CudaTwinTest, LinearOfRoundedWeights) {
  if (dtype() != at::kBFloat16) GTEST_SKIP() << "weights are rounded beside bf16";
  for (const int64_t bits : {8, 4}) {
    for (const int64_t in : {200, 1024}) {
      const at::Tensor rounded = round_linear(values({96, in}, 0.1F).to(at::kBFloat16), bits);
      const at::Tensor packed = pack_linear(rounded.to(at::kCUDA));
      const at::Tensor weight = linear(on_device(at::eye(in)), packed, 96).cpu().to(at::kFloat).t();
      for (const int64_t rows : {1, 8, 9, 32, 40}) {
        const at::Tensor x = values({rows, in});
        expect_close(linear(on_device(x), packed, 96), at::matmul(x, weight.t()), 0.5);
      }
    }
  }
}

TEST_P(CudaTwinTest, Denoise) {
  if (dtype() != at::kFloat) GTEST_SKIP() << "the chain is fp32";
  for (const bool guided : {false, true}) {
    const DenoiseProblem problem(rng_, {7, 40, 16, 160, 3, 9, guided});
    const Denoised got = problem.on(at::kCUDA).run(), exact = problem.reference(at::kDouble),
                   plain = problem.reference(at::kFloat);
    EXPECT_TRUE(as_near(got.mean.cpu(), exact.mean, plain.mean));
    EXPECT_TRUE(as_near(got.deviation.cpu(), exact.deviation, plain.deviation));
    EXPECT_TRUE(as_near(got.sums.cpu(), exact.sums, plain.sums));
  }
}

AttendCall device_call(const AttendCall& call, at::ScalarType dtype) {
  AttendCall moved = call;
  for (at::Tensor* tensor : {&moved.qkv, &moved.cache}) *tensor = tensor->to(dtype).to(at::kCUDA);
  for (at::Tensor* tensor : {&moved.positions, &moved.lengths, &moved.tree_mask, &moved.rotary}) {
    *tensor = tensor->to(at::kCUDA);
  }
  return moved;
}

// What the device is compared with: the same numbers in fp32.
AttendCall in_fp32(AttendCall call) {
  for (at::Tensor* tensor : {&call.qkv, &call.cache}) *tensor = tensor->to(at::kFloat);
  return call;
}

AttendShape random_shape(std::mt19937& rng, int trial) {
  constexpr int64_t kHeadDims[] = {2, 16, 48, 64, 128, 256};
  AttendShape shape;
  shape.sequences = pick(rng, 1, 4);
  shape.rows = trial % 3 == 0 ? 1 : pick(rng, 2, 90);
  shape.kv_heads = pick(rng, 1, 3);
  shape.heads = shape.kv_heads * pick(rng, 1, 4);
  shape.head_dim = kHeadDims[pick(rng, 0, 5)];
  shape.most_length = trial % 5 == 0 ? 0 : pick(rng, 1, 700);
  shape.masks = trial % 2 == 0 ? 0 : pick(rng, 0, 1) * (shape.sequences - 1) + 1;
  return shape;
}

TEST_P(CudaTwinTest, Attend) {
  for (int trial = 0; trial < 40; ++trial) {
    const AttendShape shape = random_shape(rng_, trial);
    const AttendCall call = trial % 4 == 3 ? make_growing_call(rng_, shape, pick(rng_, 0, 90), dtype())
                                           : make_call(rng_, shape, dtype());
    AttendCall host = in_fp32(call), device = device_call(call, dtype());
    const at::Tensor expected = host.run();
    expect_close(device.run(), expected, dtype() == at::kFloat ? 16 : 2);
    const at::Tensor cache = device.cache.cpu().to(at::kFloat);
    EXPECT_TRUE(at::isnan(cache).equal(at::isnan(host.cache))) << "other cache entries were written";
    expect_close(cache.nan_to_num(0).to(dtype()), host.cache.nan_to_num(0), 0.5);
  }
}

// Over a rounded cache both devices read and write the same rows.
TEST_P(CudaTwinTest, AttendOverRoundedCaches) {
  if (dtype() == at::kHalf) GTEST_SKIP() << "the CPU has no such operator";
  for (int trial = 0; trial < 20; ++trial) {
    AttendCall host = on_rounded_cache(make_call(rng_, random_shape(rng_, trial), dtype()));
    AttendCall device = device_call(host, dtype());
    device.cache = host.cache.to(at::kCUDA);
    const at::Tensor expected = host.run();
    expect_close(device.run(), expected.to(at::kFloat), dtype() == at::kFloat ? 16 : 2);
    EXPECT_TRUE(same_bits(device.cache.cpu(), host.cache));
  }
}

// The shapes of real models and trees, prefixes up to that of the largest image.
TEST_P(CudaTwinTest, AttendModelShapes) {
  for (const int64_t head_dim : {64, 128}) {
    for (const int64_t rows : {1, 2, 8, 26, 59, 64}) {
      for (const int64_t length : {0, 100, 376, 1144, 2400}) {
        const AttendShape shape{2, rows, 4, rows % 2 == 0 ? 4 : 2, head_dim, length, rows == 1 ? 0 : 1};
        const AttendCall call = make_call(rng_, shape, dtype());
        AttendCall host = in_fp32(call), device = device_call(call, dtype());
        SCOPED_TRACE(::testing::Message() << "head " << head_dim << " rows " << rows << " prefix " << length);
        expect_close(device.run(), host.run(), dtype() == at::kFloat ? 16 : 1);
      }
    }
  }
}

// The rows of a tree over two calls have the bits of one call.
TEST_P(CudaTwinTest, AttendTreeInTwoCallsEqualsOne) {
  for (const int64_t length : {0, 120, 127}) {
    AttendCall tree = make_call(rng_, {2, 40, 4, 2, 64, length, 1}, dtype());
    tree.tree_mask.bitwise_and_(integers({1, 40, 1}, [](int64_t i) { return (int64_t{2} << i) - 1; }));
    AttendCall whole = device_call(tree, dtype());
    const at::Tensor cache = whole.cache.clone(), expected = whole.run();
    for (const int64_t first : {0, 17}) {
      const int64_t count = first == 0 ? 17 : 23;
      const at::Tensor level = rows_of(whole, cache, first, count, first).run();
      EXPECT_TRUE(same_bits(level.cpu(), expected.narrow(1, first, count).cpu())) << "prefix " << length;
    }
    EXPECT_TRUE(same_bits(cache.cpu(), whole.cache.cpu()));
  }
}

// The rows of a chain have the same bits one at a time and all at once.
TEST_P(CudaTwinTest, AttendRowsDoNotDependOnTheirNumber) {
  for (const int64_t head_dim : {48, 64, 128}) {
    AttendCall whole = device_call(make_call(rng_, {2, 50, 4, 2, head_dim, 240, 0}, dtype()), dtype());
    const at::Tensor cache = whole.cache.clone(), expected = whole.run();
    for (int64_t row = 0; row < 50; ++row) {
      const at::Tensor step = rows_of(whole, cache, row, 1, row).run();
      ASSERT_TRUE(same_bits(step.cpu(), expected.narrow(1, row, 1).cpu())) << head_dim << " " << row;
    }
    EXPECT_TRUE(same_bits(cache.cpu(), whole.cache.cpu()));
  }
}

// A tree row has the bits of its path decoded one row at a time: the order of sums does not depend on
// hidden keys, on other rows or on where the prefix ends. (Tensor cores, which take other head sizes: only
// for the same cache indices.)
TEST_P(CudaTwinTest, AttendTreeEqualsChain) {
  AttendShape shape{1, 40, 4, 2, dtype() == at::kFloat ? 64 : 48, 0, 1};
  for (const int64_t length : {0, 120, 127, 300}) {
    shape.most_length = length;
    AttendCall whole = device_call(make_call(rng_, shape, dtype()), dtype()), path = whole;
    path.tree_mask = at::empty({0}, whole.tree_mask.options());
    const at::Tensor cache = whole.cache.clone(), expected = whole.run();
    int64_t done = 0;
    at::Tensor last;
    const uint64_t seen = static_cast<uint64_t>(whole.tree_mask[0][shape.rows - 1][0].item<int64_t>());
    for (int64_t row = 0; row < shape.rows; ++row) {
      if (((seen >> row) & 1U) != 0) last = rows_of(path, cache, row, 1, done++).run();
    }
    EXPECT_TRUE(same_bits(last[0][0].cpu(), expected[0][shape.rows - 1].cpu())) << "prefix " << length;
  }
}

INSTANTIATE_TEST_SUITE_P(, CudaTwinTest, ::testing::Values(at::kFloat, at::kBFloat16, at::kHalf),
                         [](const auto& test) { return std::string(c10::toString(test.param)); });

}  // namespace
}  // namespace lamplighter::test

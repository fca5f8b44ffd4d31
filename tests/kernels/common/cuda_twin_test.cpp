#include <ATen/Context.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/full.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include "kernels/ops.h"
#include "tests/kernels/attend/attend_problem.h"
#include "tests/kernels/common/operators.h"
#include "tests/kernels/continuous/denoise_problem.h"
#include "tests/kernels/step/ar_step_cases.h"
#include "tests/kernels/step/window_step_cases.h"

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

TEST_P(CudaTwinTest, GuideFilterAndSample) {
  for (int trial = 0; trial < 60; ++trial) {
    const int64_t images = pick(rng_, 1, 3);
    const int64_t vocabulary = trial < 10 ? trial + 1 : pick(rng_, 11, 20000);
    at::Tensor logits = random_tensor(rng_, {images * (1 + trial % 2), 3, vocabulary}, dtype(), 2);
    if (trial % 4 == 0) logits = (logits * 2).round();  // many ties
    const auto each = [&](double value) { return at::full({images}, value, at::kFloat); };
    const at::Tensor guidance = each(trial % 2 == 0 ? 1 : 4);
    const at::Tensor temperature = each(trial % 7 == 0 ? 0 : 0.9);
    const at::Tensor top_k =
        integers({images}, [&](int64_t) { return pick(rng_, 0, 1) * pick(rng_, 1, vocabulary); });
    const at::Tensor top_p = each(trial % 3 == 0 ? 0.85 : 1);
    const std::string order = pick(rng_, 0, 1) == 0 ? "ar" : "eagle";
    const at::Tensor expected =
        ops::probabilities(ops::guide_and_filter(logits, {guidance, temperature, top_k, top_p, order}));
    const at::Tensor got = ops::probabilities(
        ops::guide_and_filter(logits.to(at::kCUDA), {guidance.to(at::kCUDA), temperature.to(at::kCUDA),
                                                     top_k.to(at::kCUDA), top_p.to(at::kCUDA), order}));
    // Rounding may move one token across a top-p limit.
    EXPECT_LE(((got.cpu() > 0) != (expected > 0)).sum().item<int64_t>(), 1) << "trial " << trial;
    EXPECT_LE((got.cpu() - expected).abs().max().item<float>(), 1e-4) << "trial " << trial;
    const at::Tensor uniforms = at::rand({images, 3});
    EXPECT_TRUE(ops::sample(expected.to(at::kCUDA), uniforms.to(at::kCUDA), temperature.to(at::kCUDA))
                    .cpu()
                    .equal(ops::sample(expected, uniforms, temperature)));
  }
}

// The tokens, not only nearly: rounding of a sum moves one in a hundred million.
TEST_P(CudaTwinTest, ArStep) {
  for (int trial = 0; trial < 120; ++trial) {
    SCOPED_TRACE("trial " + std::to_string(trial));
    const int64_t vocabulary = trial % 10 == 0 ? pick(rng_, 16385, 70000) : pick(rng_, 1, 16384) / 8 * 8 + 8;
    ArStepCase expected = ar_step_case(rng_, trial, pick(rng_, 1, 9), vocabulary);
    expected.step.logits = expected.step.logits.to(dtype());
    ArStepCase got = expected.copy(at::kCUDA);
    ops::ar_step(got.step, got.state);
    ops::ar_step(expected.step, expected.state);
    const std::vector<at::Tensor*> a = got.changed(), b = expected.changed();
    for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(a[i]->cpu().equal(*b[i])) << "tensor " << i;
  }
}

TEST_P(CudaTwinTest, WindowStep) {
  for (int trial = 0; trial < 84; ++trial) {
    const int64_t vocabulary = trial % 10 == 0 ? pick(rng_, 16385, 40000) : pick(rng_, 1, 2048) * 8;
    WindowStepCase expected = window_step_case(rng_, trial, pick(rng_, 1, 4), vocabulary, pick(rng_, 2, 9));
    expected.window.logits = expected.window.logits.to(dtype());
    for (int cycle = 0; cycle < window_cycles(trial); ++cycle) {
      SCOPED_TRACE("trial " + std::to_string(trial) + " cycle " + std::to_string(cycle));
      expected.score(rng_, trial, 0.3F);
      WindowStepCase got = expected.copy(at::kCUDA);
      const ops::WindowRows rows = ops::window_step(got.step, got.window, got.state);
      const ops::WindowRows wanted = ops::window_step(expected.step, expected.window, expected.state);
      EXPECT_TRUE(rows.rows.cpu().equal(wanted.rows));
      EXPECT_TRUE(rows.count.cpu().equal(wanted.count));
      const std::vector<at::Tensor*> a = got.changed(), b = expected.changed();
      for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(a[i]->cpu().equal(*b[i])) << "tensor " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, CudaTwinTest, ::testing::Values(at::kFloat, at::kBFloat16, at::kHalf),
                         [](const auto& test) { return std::string(c10::toString(test.param)); });

class CudaSampleTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!at::globalContext().hasCUDA()) GTEST_SKIP() << "no CUDA device";
  }
};

TEST_F(CudaSampleTest, UniformsAreThoseOfTheCpu) {
  const at::Tensor seeds = at::tensor({int64_t{42}, int64_t{-1}, int64_t{1} << 62}, at::kLong);
  const at::Tensor steps = at::tensor({0, 5, 575}, at::kLong);
  const at::Tensor host = ops::uniforms(seeds, steps, ops::Purpose::accept, 1000);
  const at::Tensor device =
      ops::uniforms(seeds.to(at::kCUDA), steps.to(at::kCUDA), ops::Purpose::accept, 1000);
  EXPECT_TRUE(same_bits(device.cpu(), host));
}

// Chi-square of a million samples, level 1e-6.
TEST_F(CudaSampleTest, SamplesFollowTheDistribution) {
  constexpr int64_t kSamples = 1 << 20;
  constexpr double kCritical = 40.53;  // 7 degrees of freedom
  const std::vector<double> p = {0.001, 0.009, 0.04, 0.05, 0.1, 0.2, 0.25, 0.35};
  const at::Tensor row = at::tensor(p).to(at::kFloat);
  const at::Tensor probabilities = row.expand({1, kSamples, 8}).contiguous().to(at::kCUDA);
  const at::Tensor zero = at::full({1}, 0, at::kLong).to(at::kCUDA);
  const at::Tensor uniforms = ops::uniforms(zero, zero, ops::Purpose::token, kSamples);
  const at::Tensor tokens =
      ops::sample(probabilities, uniforms, at::full({1}, 1.0, at::kFloat).to(at::kCUDA)).cpu();
  double statistic = 0;
  for (int64_t id = 0; id < 8; ++id) {
    const double expected = p[static_cast<size_t>(id)] * kSamples;
    const double count = static_cast<double>((tokens == id).sum().item<int64_t>());
    statistic += (count - expected) * (count - expected) / expected;
  }
  EXPECT_LT(statistic, kCritical);
}

}  // namespace
}  // namespace lamplighter::test

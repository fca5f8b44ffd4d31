#include "tests/kernels/common/emulated_device.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include "kernels/elementwise/elementwise_args.h"
#include "kernels/elementwise/elementwise_cuda.h"
#include "tests/kernels/common/operators.h"

// CUDA's elementwise kernels on an emulated device against the CPU operators.
namespace lamplighter::test {
namespace {

class ElementwiseEmulatedTest : public ::testing::TestWithParam<at::ScalarType> {
 protected:
  void TearDown() override { emulated::shuffle() = 0; }

  at::ScalarType dtype() const { return GetParam(); }
  at::Tensor values(at::IntArrayRef sizes, float spread = 1) {
    return random_tensor(rng_, sizes, dtype(), spread);
  }

  // kernel<T, pack> of all threads; the pack is the largest that the widths allow.
  template <class Args, class Wide, class Narrow>
  void launch(int64_t blocks, const Args& args, Wide wide, Narrow narrow_, int64_t head_dim = 0) {
    const int64_t pack = 16 / (dtype() == at::kFloat ? 4 : 2);
    const auto kernel = args.width % pack == 0 && head_dim % pack == 0 ? wide : narrow_;
    emulated::launch({static_cast<unsigned>(blocks)}, {kElementwiseThreads}, 0, [&] { kernel(args); });
  }

  at::Tensor norm(at::Tensor* residual, const at::Tensor& x, const at::Tensor& weight) {
    RmsNormArgs args = rms_norm_args("rms_norm", residual, x, weight, 1e-5);
    at::Tensor out = at::empty_like(x);
    args.out = out.mutable_data_ptr();
    if (dtype() == at::kFloat) {
      launch(args.rows, args, rms_norm_kernel<float, 4>, rms_norm_kernel<float, 1>);
    } else {
      launch(args.rows, args, rms_norm_kernel<BFloat16Bits, 8>, rms_norm_kernel<BFloat16Bits, 1>);
    }
    return out;
  }

  at::Tensor gated(const at::Tensor& gate_up) {
    SiluMulArgs args = silu_mul_args(gate_up);
    auto shape = gate_up.sizes().vec();
    shape.back() = args.width;
    at::Tensor out = at::full(shape, std::nan(""), gate_up.options());
    args.out = out.mutable_data_ptr();
    const int64_t blocks = (args.rows * args.width + kElementwiseThreads - 1) / kElementwiseThreads;
    if (dtype() == at::kFloat) {
      launch(blocks, args, silu_mul_kernel<float, 4>, silu_mul_kernel<float, 1>);
    } else {
      launch(blocks, args, silu_mul_kernel<BFloat16Bits, 8>, silu_mul_kernel<BFloat16Bits, 1>);
    }
    return out;
  }

  at::Tensor bent(const at::Tensor& x) {
    GeluArgs args = gelu_args(x);
    at::Tensor out = at::full(x.sizes(), std::nan(""), x.options());
    args.out = out.mutable_data_ptr();
    const int64_t blocks = (args.rows * args.width + kElementwiseThreads - 1) / kElementwiseThreads;
    if (dtype() == at::kFloat) {
      launch(blocks, args, gelu_kernel<float, 4>, gelu_kernel<float, 1>);
    } else {
      launch(blocks, args, gelu_kernel<BFloat16Bits, 8>, gelu_kernel<BFloat16Bits, 1>);
    }
    return out;
  }

  at::Tensor normed_heads(const at::Tensor& values, const at::Tensor& weight, const at::Tensor& bias) {
    at::Tensor out = values.clone();
    const NormHeadsArgs args = norm_heads_args(out, weight, bias, 1e-5);
    const int64_t blocks = (args.rows * args.heads * 32 + kElementwiseThreads - 1) / kElementwiseThreads;
    if (dtype() == at::kFloat) {
      launch(blocks, args, norm_heads_kernel<float, 4>, norm_heads_kernel<float, 1>, args.head_dim);
    } else {
      launch(blocks, args, norm_heads_kernel<BFloat16Bits, 8>, norm_heads_kernel<BFloat16Bits, 1>,
             args.head_dim);
    }
    return out;
  }

  // scale: of the terms whose sum the numbers are.
  void expect_close(const at::Tensor& got, const at::Tensor& expected, double scale = 0.1) const {
    const double unit = dtype() == at::kFloat ? 1e-6 : 1.6e-2;
    const at::Tensor a = got.to(at::kDouble), b = expected.to(at::kDouble);
    EXPECT_LE(((a - b).abs() / (b.abs() + scale)).max().item<double>(), unit);  // NaN fails
  }

  std::mt19937 rng_{5};
};

// Widths below and above what a block keeps in shared memory.
constexpr int64_t kWidths[] = {1, 7, 64, 100, 1280, 4096, 9000, 4104};

TEST_P(ElementwiseEmulatedTest, NormsMatchTheCpu) {
  for (const unsigned order : {0U, 1U}) {
    emulated::shuffle() = order;
    for (const int64_t width : kWidths) {
      SCOPED_TRACE(width);
      const at::Tensor x = values({3, width}, 2), weight = values({width});
      expect_close(norm(nullptr, x, weight), rms_norm(x, weight, 1e-5));
      at::Tensor residual = values({3, width}), expected = residual.clone();
      const at::Tensor normed = add_rms_norm(expected, x, weight, 1e-5);
      expect_close(norm(&residual, x, weight), normed);
      EXPECT_TRUE(same_bits(residual, expected));
    }
  }
}

TEST_P(ElementwiseEmulatedTest, GatesMatchTheCpu) {
  for (const int64_t width : kWidths) {
    const at::Tensor gate_up = values({3, 2 * width}, 3);
    expect_close(gated(gate_up), silu_mul(gate_up));
    expect_close(bent(gate_up), exact_gelu(gate_up));
  }
}

TEST_P(ElementwiseEmulatedTest, HeadsMatchTheCpu) {
  for (const unsigned order : {0U, 1U}) {
    emulated::shuffle() = order;
    for (const int64_t size : {2, 7, 64, 128, 130, 256}) {
      SCOPED_TRACE(size);
      for (const int64_t heads : {1, 11}) {
        const at::Tensor x = values({3, heads * size + 8}, 2);
        const at::Tensor weight = values({heads, size}), bias = values({heads, size});
        expect_close(normed_heads(x, weight, bias), norm_heads(x, weight, bias, 1e-5), 4);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, ElementwiseEmulatedTest, ::testing::Values(at::kFloat, at::kBFloat16),
                         [](const auto& test) { return std::string(c10::toString(test.param)); });

}  // namespace
}  // namespace lamplighter::test

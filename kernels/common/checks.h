#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/DeviceType.h>
#include <c10/core/ScalarType.h>
#include <c10/util/Exception.h>

#include <cstdint>
#include <initializer_list>
#include <limits>

#include "kernels/common/element_type.h"

// Argument checks shared by the operators: each failure is one line naming operator, argument, what came and
// what was expected.
namespace lamplighter {

constexpr int64_t kAny = -1;  // a size that check_shape leaves open

inline void check_contiguous(const char* op, const char* name, const at::Tensor& tensor) {
  TORCH_CHECK(tensor.is_contiguous(), op, ": ", name, " has shape ", tensor.sizes(), " and strides ",
              tensor.strides(), ", expected a contiguous tensor");
}

inline void check_shape(const char* op, const char* name, const at::Tensor& tensor,
                        std::initializer_list<int64_t> expected) {
  bool equal = tensor.dim() == static_cast<int64_t>(expected.size());
  int64_t i = 0;
  for (const int64_t size : expected) {
    equal = equal && (size == kAny || tensor.size(i) == size);
    ++i;
  }
  TORCH_CHECK(equal, op, ": ", name, " has shape ", tensor.sizes(), ", expected ",
              at::IntArrayRef(expected.begin(), expected.size()), " (-1 = any)");
}

inline void check_dtype(const char* op, const char* name, const at::Tensor& tensor, at::ScalarType expected) {
  TORCH_CHECK(tensor.scalar_type() == expected, op, ": ", name, " has dtype ", tensor.scalar_type(),
              ", expected ", expected);
}

inline void check_device(const char* op, const char* name, const at::Tensor& tensor, at::Device expected) {
  TORCH_CHECK(tensor.device() == expected, op, ": ", name, " is on ", tensor.device(), ", expected ",
              expected);
}

// A contiguous tensor of the given dtype on the given device.
inline void check_tensor(const char* op, const char* name, const at::Tensor& tensor, at::ScalarType dtype,
                         at::Device device) {
  check_device(op, name, tensor, device);
  check_dtype(op, name, tensor, dtype);
  check_contiguous(op, name, tensor);
}

// Rows over a vocabulary are counted in int.
inline void check_vocabulary(const char* op, const at::Tensor& tensor, int64_t vocabulary) {
  TORCH_CHECK(vocabulary > 0 && vocabulary <= std::numeric_limits<int>::max() / 2, op, ": shape ",
              tensor.sizes(), " has ", vocabulary, " entries a row, expected 1..2^30");
}

// A contiguous tensor of activations: fp32 or bf16, on CUDA also fp16.
inline void check_activations(const char* op, const char* name, const at::Tensor& tensor) {
  const at::ScalarType dtype = tensor.scalar_type();
  const bool half_on_cuda = dtype == at::kHalf && tensor.device().is_cuda();
  TORCH_CHECK(dtype == at::kFloat || dtype == at::kBFloat16 || half_on_cuda, op, ": ", name, " has dtype ",
              dtype, ", expected float32 or bfloat16", tensor.device().is_cuda() ? " or float16" : "");
  check_contiguous(op, name, tensor);
}

// For a dtype that check_activations accepts.
inline ElementType element_type(const at::Tensor& tensor) {
  const at::ScalarType dtype = tensor.scalar_type();
  if (dtype == at::kFloat) return ElementType::kFloat32;
  return dtype == at::kBFloat16 ? ElementType::kBFloat16 : ElementType::kFloat16;
}

}  // namespace lamplighter

#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <utility>
#include <vector>

#include "kernels/common/checks.h"

// What operators on the device `meta` share. Sizes may be symbolic there, so only ranks and dtypes are
// checked. Results are contiguous, like results of the kernels.
namespace lamplighter {

using SymSizes = std::vector<c10::SymInt>;

inline void check_rank(const char* op, const char* name, const at::Tensor& tensor, int64_t least) {
  TORCH_CHECK(tensor.dim() >= least, op, ": ", name, " has ", tensor.dim(), " dimensions, expected at least ",
              least);
}

inline void check_same_dtype(const char* op, const char* name, const at::Tensor& tensor,
                             const at::Tensor& model) {
  check_dtype(op, name, tensor, model.scalar_type());
}

// Of these sizes, else like `model`.
inline at::Tensor like(const at::Tensor& model, const SymSizes& sizes) {
  return at::empty_symint(sizes, model.options());
}

inline at::Tensor like(const at::Tensor& model, const SymSizes& sizes, at::ScalarType dtype) {
  return at::empty_symint(sizes, model.options().dtype(dtype));
}

inline at::Tensor with_last(const at::Tensor& model, c10::SymInt last) {
  SymSizes sizes = model.sym_sizes().vec();
  sizes.back() = std::move(last);
  return like(model, sizes);
}

}  // namespace lamplighter

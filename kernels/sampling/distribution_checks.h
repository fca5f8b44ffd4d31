#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "kernels/common/meta.h"
#include "kernels/sampling/distribution.h"
#include "kernels/sampling/distribution_args.h"

// Rows of distributions, checked and turned into what kernels read, for every device.
namespace lamplighter {

// Rows as a schema has them: values, and statistics where they are logits.
inline ops::Distributions distributions(const at::Tensor& values,
                                        const std::optional<at::Tensor>& statistics) {
  return {values, statistics.value_or(at::Tensor())};
}

inline void check_logits(const char* op, const char* name, const at::Tensor& logits) {
  const at::ScalarType dtype = logits.scalar_type();
  TORCH_CHECK(dtype == at::kFloat || dtype == at::kBFloat16 || dtype == at::kHalf, op, ": ", name,
              " have dtype ", dtype, ", expected float32, bfloat16 or float16");
  check_contiguous(op, name, logits);
  check_shape(op, name, logits, {kAny, kAny, kAny});
  check_vocabulary(op, logits, logits.size(2));
  TORCH_CHECK(logits.size(2) <= kMostFilteredTokens, op, ": ", name, " have shape ", logits.sizes(),
              ", expected at most ", kMostFilteredTokens, " tokens");
}

// logits [S, R, V], S = images or 2 images.
inline DistributionRows logit_rows(const char* op, const char* name, const at::Tensor& logits,
                                   int64_t images) {
  check_logits(op, name, logits);
  TORCH_CHECK(logits.size(0) == images || logits.size(0) == 2 * images, op, ": ", name, " have shape ",
              logits.sizes(), ", expected ", images, " or ", 2 * images, " sequences for ", images,
              " images");
  DistributionRows rows{};
  rows.values = logits.const_data_ptr();
  rows.rows = logits.size(1);
  rows.vocabulary = logits.size(2);
  rows.guided = logits.size(0) != images;
  rows.type = element_type(logits);
  return rows;
}

struct CheckedRows {
  DistributionRows rows;
  int64_t images;
};

// Shapes: ops::Distributions.
inline CheckedRows distribution_rows(const char* op, const char* name, const ops::Distributions& given) {
  const at::Tensor& values = given.values;
  const at::Tensor& statistics = given.statistics;
  if (!statistics.defined()) {
    check_tensor(op, name, values, at::kFloat, values.device());
    check_shape(op, name, values, {kAny, kAny, kAny});
    check_vocabulary(op, values, values.size(2));
    return {{values.const_data_ptr(), nullptr, values.size(1), values.size(2), false, ElementType::kFloat32},
            values.size(0)};
  }
  check_tensor(op, "statistics", statistics, at::kFloat, values.device());
  check_shape(op, "statistics", statistics,
              {kAny, values.dim() == 3 ? values.size(1) : kAny, kRowStatistics});
  CheckedRows checked{logit_rows(op, name, values, statistics.size(0)), statistics.size(0)};
  checked.rows.statistics = reinterpret_cast<const RowStatistics*>(statistics.const_data_ptr<float>());
  return checked;
}

// The same on the device `meta`. Returns the number of images.
inline c10::SymInt check_distributions(const char* op, const char* name, const ops::Distributions& given) {
  const at::Tensor& floats = given.statistics.defined() ? given.statistics : given.values;
  check_rank(op, name, given.values, 3);
  check_dtype(op, given.statistics.defined() ? "statistics" : name, floats, at::kFloat);
  return floats.sym_size(0);
}

}  // namespace lamplighter

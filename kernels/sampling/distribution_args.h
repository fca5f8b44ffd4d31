#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "kernels/common/exported.h"

namespace lamplighter::ops {

// Rows of distributions over V tokens: logits with statistics from guide_and_filter, or probabilities.
struct Distributions {
  at::Tensor values;      // logits [S, R, V] fp32, bf16 or fp16; or probabilities fp32 [I, R, V]
  at::Tensor statistics;  // fp32 [I, R, 7], kernels/sampling/distribution.h; undefined: the values are
                          // probabilities

  Distributions() = default;
  Distributions(at::Tensor probabilities) : values(std::move(probabilities)) {}
  Distributions(at::Tensor logits, at::Tensor of_rows)
      : values(std::move(logits)), statistics(std::move(of_rows)) {}
  bool defined() const { return values.defined(); }
};

// The probability of every row's likeliest token: fp32 [I, R].
LAMPLIGHTER_EXPORTED at::Tensor largest_probabilities(const Distributions& rows);

// Probabilities fp32 [I, R, V] written out; returned as they are where `rows` holds them already.
LAMPLIGHTER_EXPORTED at::Tensor probabilities(const Distributions& rows);

// Rows one behind the other: all probabilities, or all logits of one kind.
LAMPLIGHTER_EXPORTED Distributions cat(const std::vector<Distributions>& rows);

}  // namespace lamplighter::ops

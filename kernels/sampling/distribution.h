#pragma once

#include <cstdint>

#include "kernels/common/element_type.h"

namespace lamplighter {

// What guide_and_filter leaves of a row. With the logits, which it does not touch, this is the distribution
//   p(i) = exp((z(i) - largest) * scale) * norm for the tokens that stay, 0 for the others,
// z being the guided logits u + (c - u) * guidance. All zeros for a row that is no distribution.
struct RowStatistics {
  float guidance;
  float largest;  // the greatest z
  float scale;    // 1 / temperature
  float norm;     // 1 / the sum over the tokens that stay
  float floor;    // tokens with z > floor stay, and of those with z == floor the ids first..last
  float first;
  float last;
};
constexpr int64_t kRowStatistics = sizeof(RowStatistics) / sizeof(float);
constexpr int64_t kMostFilteredTokens = int64_t{1} << 24;  // ids that a float holds

// Rows of distributions: logits and their statistics, or probabilities.
struct DistributionRows {
  const void* values;  // logits [images, rows, vocabulary], or guided [images, 2, rows,
                       // vocabulary]: c, then u; or fp32 probabilities [images, rows, vocabulary]
  const RowStatistics* statistics;  // [images, rows]; null: the values are probabilities
  int64_t rows;
  int64_t vocabulary;
  bool guided;
  ElementType type;  // of logits
};

}  // namespace lamplighter

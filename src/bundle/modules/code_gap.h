#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace lamplighter {

// The ids that heads for texts leave out: codes of images, which have no probability in texts.
struct CodeGap {
  std::int64_t first = 0, codes = 0;  // no codes: nothing is left out

  // rows [..., ids without the codes] -> [..., all ids]. Throws c10::Error where there are fewer than
  // `first`.
  at::Tensor filled(const at::Tensor& rows) const;
};

}  // namespace lamplighter

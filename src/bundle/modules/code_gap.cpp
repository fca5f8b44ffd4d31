#include "bundle/modules/code_gap.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>

#include <vector>

namespace lamplighter {

at::Tensor CodeGap::filled(const at::Tensor& rows) const {
  if (codes == 0) return rows;
  // Finite, because infinite logits say that weights are damaged. At any temperature it is far from the
  // others.
  const double least = rows.scalar_type() == at::kHalf ? -65504.0 : -1e38;
  std::vector<std::int64_t> shape = rows.sizes().vec();
  shape.back() = codes;
  const std::int64_t behind = rows.size(-1) - first;
  return at::cat(
      {rows.narrow(-1, 0, first), at::full(shape, least, rows.options()), rows.narrow(-1, first, behind)},
      -1);
}

}  // namespace lamplighter

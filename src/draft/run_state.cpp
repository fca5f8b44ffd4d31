#include "draft/run_state.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/gather.h>

#include <utility>

namespace lamplighter {
namespace {

// The guidance scale fp32 [I], or [I, R] where tokens differ in it.
at::Tensor row_guidance(const RunState& run, const at::Tensor& depths, std::int64_t rows) {
  const std::int64_t known = run.guidance.size(1);
  if (known == 1) return run.guidance.squeeze(1);
  const at::Tensor index = run.counters.steps.unsqueeze(1) + depths;  // of the token that a row decides
  return run.guidance.gather(1, index.clamp_max(known - 1).expand({-1, rows}));
}

}  // namespace

at::Tensor per_sequence(const at::Tensor& per_image, bool guided) {
  return guided ? per_image.repeat_interleave(2, 0) : per_image;
}

at::Tensor rows_at(const at::Tensor& rows, const at::Tensor& index) {
  return rows.gather(1, index.unsqueeze(2).expand({-1, -1, rows.size(2)}));
}

ops::Distributions rows_at(const ops::Distributions& rows, const at::Tensor& index) {
  const bool pairs = rows.values.size(0) != index.size(0);
  at::Tensor values = rows_at(rows.values, per_sequence(index, pairs));
  if (!rows.statistics.defined()) return values;
  return {std::move(values), rows_at(rows.statistics, index)};
}

ops::Filtering filtering(const RunState& run, const Filter& filter, const at::Tensor& depths,
                         std::int64_t rows) {
  return {row_guidance(run, depths, rows), filter.temperature, filter.top_k, filter.top_p,
          run.sampling_order};
}

ops::Distributions distributions(const RunState& run, const Filter& filter, const at::Tensor& logits,
                                 const at::Tensor& depths) {
  return ops::guide_and_filter(logits, filtering(run, filter, depths, logits.size(1)));
}

}  // namespace lamplighter

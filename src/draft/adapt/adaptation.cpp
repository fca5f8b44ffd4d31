#include "draft/adapt/adaptation.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

namespace lamplighter {

void Adaptation::allocate(const RunShape& shape) {
  const Grid& grid = *shape.grid;
  rule_ = make_({grid.tokens(), grid.columns, grid.preview_tokens(), std::max(1, grid.preview_columns)},
                least_, most_);
  notes_ = at::zeros({shape.images, grid.tokens(), 2}, at::kLong);
}

PositionNote* Adaptation::notes_of(std::int64_t image) const {
  return reinterpret_cast<PositionNote*>(notes_.mutable_data_ptr<std::int64_t>()) + image * notes_.size(1);
}

std::vector<DraftSize> Adaptation::next(const RunState& run) const {
  const at::Tensor steps = run.counters.steps.cpu();
  std::vector<DraftSize> sizes;
  for (std::int64_t image = 0; image < steps.size(0); ++image)
    sizes.push_back(rule_->next(notes_of(image), steps.const_data_ptr<std::int64_t>()[image] - 1));
  return sizes;
}

void Adaptation::learn(const Draft& draft, const Verified& verified, const RunState& run) {
  if (draft.tokens.size(1) == 1) return;  // the first token of an image
  const at::Tensor unused = (draft.tokens < 0).logical_or(draft.nodes.parents < 0);
  const at::Tensor depths = draft.nodes.depths.expand_as(draft.tokens).masked_fill(unused, 0).amax(1).cpu();
  const at::Tensor steps = run.counters.steps.cpu(), accepted = verified.walk.count.cpu();
  for (std::int64_t image = 0; image < steps.size(0); ++image) {
    rule_->learn(notes_of(image), steps.const_data_ptr<std::int64_t>()[image] - 1,
                 depths.const_data_ptr<std::int64_t>()[image],
                 accepted.const_data_ptr<std::int64_t>()[image]);
  }
}

std::optional<Adaptation> adapted_window(const Method& method) {
  if (!method.adapts) return std::nullopt;
  return std::make_optional<Adaptation>(&expected_lengths, DraftSize{1, 1},
                                        DraftSize{method.tree->max_depth(), 1});
}

BatchSizes batch_sizes(const std::vector<DraftSize>& sizes, const c10::Device& device) {
  BatchSizes batch;
  std::vector<std::int64_t> depths, widths;
  for (const DraftSize& size : sizes) {
    depths.push_back(size.depth);
    widths.push_back(size.width);
    batch.largest.depth = std::max(batch.largest.depth, size.depth);
    batch.largest.width = std::max(batch.largest.width, size.width);
  }
  batch.depths = integers(depths, device).unsqueeze(1);
  batch.widths = integers(widths, device).unsqueeze(1);
  return batch;
}

void shorten(const BatchSizes& sizes, Draft& chain) {
  const std::int64_t nodes = sizes.largest.depth + 1;
  if (nodes < chain.nodes.parents.size(1)) chain.nodes = first_nodes(chain.nodes, nodes);
  chain.tokens = chain.tokens.narrow(1, 0, nodes).masked_fill(chain.nodes.depths > sizes.depths, -1);
}

}  // namespace lamplighter

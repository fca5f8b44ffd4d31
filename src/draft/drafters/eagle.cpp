#include "draft/drafters/eagle.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "draft/none.h"

namespace lamplighter {

Eagle::Eagle(const Method& method, const Models& models)
    : layer_(make_layer(*models.drafter)),
      method_(method),
      network_(*models.drafter),
      feature_width_(layer_->feature_width(models.target->manifest())) {}

void Eagle::allocate(const RunShape& shape, std::int64_t rows) {
  const std::int64_t sequences = method_.conditional ? shape.images : shape.sequences();
  const std::int64_t depth = this->shape().depth;
  const std::int64_t kept = depth + (shape.grid->row_end.empty() ? 1 : 2);
  // An accepted path, with a row end, is written before a tree grows.
  cache = network_.make_cache(sequences, rows + std::max(grown_rows(), depth + 2));
  const auto integers = at::dtype(at::kLong).device(cache.device());
  lengths = at::zeros({sequences}, integers);
  fresh.count = at::zeros({sequences}, integers);
  fresh.ids = at::zeros({sequences, kept}, integers);
  fresh.positions = at::zeros({sequences, kept}, integers);
  fresh.features = at::zeros({sequences, kept, feature_width_}, cache.options());
}

at::Tensor Eagle::drafted_half(const at::Tensor& per_sequence, const RunState& run) const {
  return conditional_half(per_sequence, method_.conditional && run.guided);
}

void Eagle::begin(const Prompts& prompts, const Prefilled& prefilled, const RunState& run) {
  lengths.copy_(layer_->read_prompts(prompts, prefilled, method_.conditional && run.guided, cache));
}

at::Tensor Eagle::run_new_tokens(const NewTokensPart& part) {
  return layer_->forward(layer_->embed(part.ids), part.features, part.positions,
                         at::empty({0}, part.ids.options()), lengths, cache);
}

at::Tensor Eagle::extend(const RunState& run) {
  const std::int64_t rows = run.fixed_shapes
                                ? fresh.ids.size(1)
                                : std::max<std::int64_t>(1, fresh.count.max().item<std::int64_t>());
  const auto valid = [rows](const at::Tensor& all) { return all.narrow(1, 0, rows).contiguous(); };
  const at::Tensor hidden = run_new_tokens({valid(fresh.ids), valid(fresh.features), valid(fresh.positions)});
  lengths.add_(fresh.count);
  if (rows == 1) return hidden;
  return rows_at(hidden, (fresh.count - 1).clamp_min_(0).unsqueeze(1));
}

at::Tensor Eagle::run_level(const RunState& run, const Level& level, const at::Tensor& position,
                            const at::Tensor& level_lengths) {
  const auto [ids, positions] = ops::tree_rows(level.codes, level.parent_depths, position,
                                               run.counters.first_image_id, run.counters.last_position - 1);
  return layer_->forward(layer_->embed(ids), level.features, positions, level.mask, level_lengths, cache);
}

Draft Eagle::draft(const RunState& run) {
  return grow(run, extend(run));
}

void Eagle::update(const Draft& /*draft*/, const Scores& scores, const Verified& verified,
                   const RunState& run) {
  ops::new_tokens(committed_tree(verified), scores.features.narrow(2, 0, feature_width_), run.counters,
                  fresh);
}

std::vector<PerImage> Eagle::per_image() {
  return {{&fresh.count, 0},    {&fresh.ids, 0}, {&fresh.positions, 0},
          {&fresh.features, 0}, {&lengths, 0},   {&cache, 2, 4}};
}

void Eagle::advance_for_benchmark(std::int64_t slots) {
  cache.zero_();
  lengths.add_(slots);
  fresh.positions.add_(slots);
}

std::unique_ptr<DraftMethod> make_eagle(const Method& method, const Models& models) {
  if (!method.tree) return make_eagle_dynamic(method, models);
  if (method.tree->drafted() == 0) return make_none(method, models);
  return make_eagle_static(method, models, *method.tree);
}

}  // namespace lamplighter

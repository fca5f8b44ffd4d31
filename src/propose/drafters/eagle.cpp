#include "propose/drafters/eagle.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace lamplighter {

namespace {

// Of the features that the drafter reads; models read none.
std::int64_t width_of(const DrafterEntry& drafter, const Manifest& manifest) {
  if (drafter.is_model()) return 0;
  const auto inner = static_cast<std::int64_t>(drafter.feature_layers.size());
  return inner > 0 ? inner * manifest.target.hidden : manifest.target.features;
}

}  // namespace

Eagle::Eagle(const Method& method, const Models& models)
    : drafter_(*models.drafter),
      method_(method),
      feature_width_(width_of(drafter_.entry(), models.target->manifest())) {}

void Eagle::allocate(const RunShape& shape, std::int64_t rows) {
  const std::int64_t sequences = method_.conditional ? shape.images : shape.sequences();
  const std::int64_t depth = this->shape().depth;
  const std::int64_t kept = depth + (shape.grid->row_end.empty() ? 1 : 2);
  // An accepted path, with a row end, is written before a tree grows.
  cache = drafter_.make_cache(sequences, rows + std::max(grown_rows(), depth + 2));
  const auto integers = at::dtype(at::kLong).device(cache.device());
  lengths = at::zeros({sequences}, integers);
  fresh.count = at::zeros({sequences}, integers);
  fresh.ids = at::zeros({sequences, kept}, integers);
  fresh.positions = at::zeros({sequences, kept}, integers);
  fresh.features = at::zeros({sequences, kept, feature_width_}, cache.options());
}

at::Tensor Eagle::drafted_half(const at::Tensor& per_sequence, const RunState& run) const {
  return method_.conditional && run.guided ? per_sequence.slice(0, 0, per_sequence.size(0), 2).contiguous()
                                           : per_sequence;
}

void Eagle::read_prompts(const Prompts& prompts, const Prefilled& prefilled, const RunState& run) {
  at::Tensor rows = prompts.ids.defined() ? drafter_.embed(prompts.ids) : prompts.drafter_rows;
  rows = rows.narrow(1, 0, prefilled.positions.size(1)).contiguous();
  drafter_.read_prompt(drafted_half(rows, run), drafted_half(prefilled.positions, run), cache);
  lengths.copy_(drafted_half(prompts.valid.to(lengths.device()), run));
}

void Eagle::begin(const Prompts& prompts, const Prefilled& prefilled, const RunState& run) {
  if (drafter_.entry().is_model()) return read_prompts(prompts, prefilled, run);
  const at::Tensor& features = prefilled.features;
  at::Tensor rows = features, places = prefilled.positions, valid = prompts.valid.to(features.device());
  if (prompts.padded) {  // the drafter has the padding in front, the target behind
    places = at::arange(rows.size(1), valid.options()).expand_as(places).contiguous();
    rows = rows_at(features, (places + valid.unsqueeze(1)).remainder(rows.size(1)));
    valid = at::full_like(valid, rows.size(1));
  }
  rows = drafted_half(rows, run);
  const std::optional<std::int64_t> stand_in = drafter_.entry().prompt_id;
  const at::Tensor ids =
      stand_in ? at::full({rows.size(0), rows.size(1)}, *stand_in, valid.options())
               : drafted_half(prompts.ids.roll(-1, 1).narrow(1, 0, rows.size(1)), run).contiguous();
  drafter_.forward(drafter_.embed(ids), rows, drafted_half(places, run), at::empty({0}, ids.options()),
                   lengths, cache);
  lengths.copy_(drafted_half(valid, run) - 1);
}

at::Tensor Eagle::run_fresh(const FreshPart& part) {
  return drafter_.forward(drafter_.embed(part.ids), part.features, part.positions,
                          at::empty({0}, part.ids.options()), lengths, cache);
}

at::Tensor Eagle::extend(const RunState& run) {
  const std::int64_t rows = run.fixed_shapes
                                ? fresh.ids.size(1)
                                : std::max<std::int64_t>(1, fresh.count.max().item<std::int64_t>());
  const auto valid = [rows](const at::Tensor& all) { return all.narrow(1, 0, rows).contiguous(); };
  const at::Tensor hidden = run_fresh({valid(fresh.ids), valid(fresh.features), valid(fresh.positions)});
  lengths.add_(fresh.count);
  if (rows == 1) return hidden;
  return rows_at(hidden, (fresh.count - 1).clamp_min_(0).unsqueeze(1));
}

at::Tensor Eagle::run_level(const RunState& run, const Level& level, const at::Tensor& position,
                            const at::Tensor& level_lengths) {
  const auto [ids, positions] =
      ops::tree_rows(level.codes, level.parent_depths, position, run.first_image_id, run.last_position - 1);
  return drafter_.forward(drafter_.embed(ids), level.features, positions, level.mask, level_lengths, cache);
}

Draft Eagle::propose(const RunState& run) {
  return grow(run, extend(run));
}

void Eagle::learn(const Draft& draft, const Scores& scores, const Judged& judged, const KeptRows& kept,
                  const RunState& run) {
  ops::fresh_rows({draft.tokens, draft.depths, judged.path, judged.count, judged.token, judged.status,
                   kept.rows, kept.count},
                  scores.features.narrow(2, 0, feature_width_), run, fresh);
}

std::vector<PerImage> Eagle::per_image() {
  return {{&fresh.count, 0},    {&fresh.ids, 0}, {&fresh.positions, 0},
          {&fresh.features, 0}, {&lengths, 0},   {&cache, 2, 4}};
}

void Eagle::skip(std::int64_t rows) {
  cache.zero_();
  lengths.add_(rows);
  fresh.positions.add_(rows);
}

std::unique_ptr<Proposer> make_eagle(const Method& method, const Models& models) {
  if (!method.tree) return make_eagle_dynamic(method, models);
  if (method.tree->drafted() == 0) return make_none(method, models);
  return make_eagle_static(method, models, *method.tree);
}

}  // namespace lamplighter

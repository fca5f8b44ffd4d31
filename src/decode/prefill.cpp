#include "decode/prefill.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros_like.h>

#include "decode/cycle.h"
#include "decode/kept.h"

namespace lamplighter {
namespace {

// Cache slots of zeros behind every prompt.
void add_zero_rows(const at::Tensor& valid, const DecodeState& state) {
  for (std::int64_t s = 0; s < valid.size(0); ++s)
    state.run.cache.select(2, s).narrow(3, valid[s].item<std::int64_t>(), state.tree.zero_rows).zero_();
}

}  // namespace

at::Tensor prompt_positions(const Target& target, const Prompts& prompts) {
  const PromptEntry& prompt = *target.manifest().prompt;
  const at::Tensor valid = prompts.valid.to(target.placement().device);
  const std::int64_t length = prompts.longest();
  at::Tensor positions = at::arange(length, valid.options()).unsqueeze(0);
  const at::Tensor kept = kept_counts(prompts);
  if (prompt.align == "end") positions = positions + (prompt.length - valid + kept).unsqueeze(1);
  const std::int64_t last = prompt.length + kept.max().item<std::int64_t>() - 1;
  return positions.clamp_max(last).expand({valid.size(0), length}).contiguous();
}

Scores prefill(const Models& models, const Prompts& prompts, DecodeState& state) {
  const Target& target = *models.target;
  const at::Tensor positions = prompt_positions(target, prompts);
  const at::Tensor valid = prompts.valid.to(positions.device());
  const Target::Output output =
      models.run(prompts.rows.narrow(1, 0, positions.size(1)).contiguous(), positions,
                 at::empty({0}, valid.options()), at::zeros_like(valid), state.run.cache);
  state.draft_method->begin(prompts, {output.features, positions}, state.run);
  const at::Tensor last = (valid - 1).unsqueeze(1);
  state.run.counters.lengths.copy_(valid - 1 + state.tree.zero_rows);
  if (state.tree.zero_rows > 0) add_zero_rows(prompts.valid, state);
  state.run.counters.position.copy_(positions.gather(1, last).squeeze(1));
  return {rows_at(output.hidden, last), rows_at(output.features, last)};
}

DecodeState begin(const Models& models, const Method& method, const PendingImages& images,
                  const RunShape& shape) {
  RunShape own = shape;
  own.images = static_cast<std::int64_t>(images.requests.size());
  const Prompts prompts = with_kept(models, images.prompts, images.requests, *shape.grid);
  DecodeState state = make_state(models, method, own, prompts.longest(), images.requests);
  const Scores scores = prefill(models, prompts, state);
  const Draft last = last_token(state);
  commit(state, last, scores, verify(models, method, state, last, scores));
  return state;
}

}  // namespace lamplighter

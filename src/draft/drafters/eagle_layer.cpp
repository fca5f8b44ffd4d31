#include "draft/drafters/eagle_layer.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <optional>

#include "draft/run_state.h"

namespace lamplighter {

std::int64_t EagleLayer::feature_width(const Manifest& manifest) const {
  const auto inner = static_cast<std::int64_t>(network_.entry().feature_layers.size());
  return inner > 0 ? inner * manifest.target.hidden : manifest.target.features;
}

at::Tensor EagleLayer::embed(const at::Tensor& ids) const {
  return network_.module()("embed", {ids});
}

at::Tensor EagleLayer::forward(const at::Tensor& embeddings, const at::Tensor& features,
                               const at::Tensor& positions, const at::Tensor& tree_mask,
                               const at::Tensor& lengths, const at::Tensor& cache) const {
  return network_.module()("forward", {embeddings, features, positions, tree_mask, lengths, cache});
}

at::Tensor EagleLayer::logits(const at::Tensor& hidden) const {
  return network_.all_logits(network_.module()("logits", {hidden}));
}

at::Tensor EagleLayer::read_prompts(const Prompts& prompts, const Prefilled& prefilled, bool conditional,
                                    const at::Tensor& cache) const {
  const auto own = [&](const at::Tensor& all) { return conditional_half(all, conditional); };
  at::Tensor rows = prefilled.features, positions = prefilled.positions, kept = prompts.kept_ids,
             valid = prompts.valid.to(rows.device());
  if (prompts.padded) {  // the drafter reads the padding before the prompt, the target behind it
    positions = at::arange(rows.size(1), valid.options()).expand_as(positions).contiguous();
    const at::Tensor turned = (positions + valid.unsqueeze(1)).remainder(rows.size(1));
    rows = rows_at(rows, turned);
    if (kept.defined()) kept = kept.gather(1, turned);
    valid = at::full_like(valid, rows.size(1));
  }
  rows = own(rows);
  const std::optional<std::int64_t> prompt_id = network_.entry().prompt_id;
  const auto next = [&](const at::Tensor& all) {
    return own(all.roll(-1, 1).narrow(1, 0, rows.size(1))).contiguous();
  };
  at::Tensor ids =
      prompt_id ? at::full({rows.size(0), rows.size(1)}, *prompt_id, valid.options()) : next(prompts.ids);
  if (kept.defined()) ids = at::where(next(kept) >= 0, next(kept), ids);
  forward(embed(ids), rows, own(positions), at::empty({0}, ids.options()),
          at::zeros({rows.size(0)}, ids.options()), cache);
  return own(valid) - 1;
}

at::Tensor SmallTarget::forward(const at::Tensor& embeddings, const at::Tensor& /*features*/,
                                const at::Tensor& positions, const at::Tensor& tree_mask,
                                const at::Tensor& lengths, const at::Tensor& cache) const {
  return network_.module().call("forward", {embeddings, positions + 1, tree_mask, lengths, cache}).front();
}

at::Tensor SmallTarget::read_prompts(const Prompts& prompts, const Prefilled& prefilled, bool conditional,
                                     const at::Tensor& cache) const {
  at::Tensor rows = prompts.ids.defined() ? embed(prompts.ids) : prompts.drafter_rows;
  rows = rows.narrow(1, 0, prefilled.positions.size(1)).contiguous();
  run_prompt(conditional_half(rows, conditional), conditional_half(prefilled.positions, conditional), cache);
  return conditional_half(prompts.valid.to(cache.device()), conditional);
}

at::Tensor SmallTarget::embed_condition(const at::Tensor& features, const at::Tensor& mask) const {
  return network_.module()("embed_condition", {features, mask});
}

at::Tensor SmallTarget::embed_unconditional(const at::Tensor& mask) const {
  return network_.module()("embed_unconditional", {mask});
}

void SmallTarget::run_prompt(const at::Tensor& embeddings, const at::Tensor& positions,
                             const at::Tensor& cache) const {
  const at::Tensor causal = at::empty({0}, positions.options());
  const at::Tensor lengths = at::zeros({embeddings.size(0)}, positions.options());
  network_.module().call("forward", {embeddings, positions, causal, lengths, cache});
}

bool is_small_target(const DraftModel& network) {
  return network.kind().is_target();
}

std::unique_ptr<EagleLayer> make_layer(const DraftModel& network) {
  if (is_small_target(network)) return std::make_unique<SmallTarget>(network);
  return std::make_unique<EagleLayer>(network);
}

at::Tensor conditional_half(const at::Tensor& per_sequence, bool conditional) {
  return conditional ? per_sequence.slice(0, 0, per_sequence.size(0), 2).contiguous() : per_sequence;
}

}  // namespace lamplighter

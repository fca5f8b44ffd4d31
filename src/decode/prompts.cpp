#include "decode/prompts.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>

#include "draft/drafters/eagle_layer.h"
#include "lamplighter/error.h"

namespace lamplighter {
namespace {

// Pads prompts of tokens to one length.
Prompts embed_tokens(const Target& target, const std::vector<Condition>& conditions, bool guided) {
  std::vector<const std::vector<std::int64_t>*> sequences;
  for (const Condition& condition : conditions) {
    sequences.push_back(&condition.ids);
    if (guided) sequences.push_back(&condition.unconditional);
  }
  std::vector<std::int64_t> valid;
  for (const auto* ids : sequences) valid.push_back(static_cast<std::int64_t>(ids->size()));
  const std::int64_t length = *std::max_element(valid.begin(), valid.end());
  at::Tensor ids = at::zeros({static_cast<std::int64_t>(valid.size()), length}, at::kLong);
  for (std::size_t i = 0; i < sequences.size(); ++i)
    ids[static_cast<std::int64_t>(i)].narrow(0, 0, valid[i]).copy_(at::tensor(*sequences[i]));
  ids = ids.to(target.placement().device);
  return {target.embed(ids), at::tensor(valid), ids};
}

// The null caption is as long as a prompt can be: its last rows replace the caption's, its first ones those
// of the padding. Conditional rows of padding are zero.
void add_null_padding(const Target& target, std::int64_t valid, const at::Tensor& rows) {
  const std::int64_t padding = rows.size(1) - valid;
  const at::Tensor whole =
      target.embed_unconditional(at::ones({1, rows.size(1)}, rows.options().dtype(at::kLong)));
  rows.narrow(1, valid, padding).copy_(whole.narrow(1, 0, padding));
}

// Embeds conditions one by one.
template <class Model>
at::Tensor embed_all(const Model& model, const std::vector<Condition>& conditions, bool guided) {
  std::vector<at::Tensor> rows;
  for (const Condition& condition : conditions) {
    rows.push_back(model.embed_condition(condition.features, condition.mask));
    if (guided) rows.push_back(model.embed_unconditional(condition.mask));
  }
  return at::cat(rows);
}

}  // namespace

PromptEncoder::PromptEncoder(const Manifest& manifest, const Placement& placement)
    : kind_(manifest.prompt->kind),
      length_(manifest.prompt->length),
      features_(manifest.prompt->features),
      placement_(placement) {
  if (kind_ != "text_features") return;
  Placement wide = placement;  // the activations of T5 exceed the range of fp16
  if (wide.dtype == at::kHalf) wide.dtype = at::kBFloat16;
  encoder_ = std::make_unique<TextEncoder>(manifest, wide);
}

Condition PromptEncoder::encode(const PromptIds& prompt) const {
  if (kind_ == "tokens") return {{}, {}, prompt.ids, prompt.unconditional};
  const at::Tensor ids = at::tensor(prompt.ids).unsqueeze(0).to(placement_.device);
  if (!encoder_) return {ids, at::ones_like(ids)};
  // The encoder sees the valid ids only; padding afterwards gives the same rows for less work.
  const at::Tensor features = encoder_->encode(ids, at::ones_like(ids));
  if (features.size(-1) != features_) {
    throw Error(ExitCode::bundle, "text_encoder: got features of width " + std::to_string(features.size(-1)) +
                                      ", the manifest says prompt.features " + std::to_string(features_));
  }
  const std::int64_t padding = length_ - ids.size(1);
  return {at::constant_pad_nd(features, {0, 0, 0, padding}),
          at::constant_pad_nd(at::ones_like(ids), {0, padding})};
}

Prompts embed_prompts(const Models& models, const std::vector<Condition>& conditions, bool guided,
                      bool padded) {
  const c10::InferenceMode inference;
  const Target& target = *models.target;
  if (target.manifest().prompt->kind == "tokens") return embed_tokens(target, conditions, guided);
  std::vector<at::Tensor> valid;
  for (const Condition& condition : conditions) {
    valid.push_back(condition.mask.sum(1));
    if (guided) valid.push_back(valid.back());
  }
  Prompts prompts{embed_all(target, conditions, guided), at::cat(valid).cpu(), {}, {}, padded};
  for (std::int64_t s = 1; padded && guided && s < prompts.valid.size(0); s += 2)
    add_null_padding(target, prompts.valid[s].item<std::int64_t>(), prompts.rows.narrow(0, s, 1));
  if (models.drafter != nullptr && is_small_target(*models.drafter))
    prompts.drafter_rows = embed_all(SmallTarget(*models.drafter), conditions, guided);
  return prompts;
}

}  // namespace lamplighter

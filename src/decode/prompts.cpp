#include "decode/prompts.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/tensor.h>
#include <c10/core/InferenceMode.h>

#include "base/files.h"
#include "lamplighter/error.h"

namespace lamplighter {

PromptEncoder::PromptEncoder(const Manifest& manifest, const Placement& placement)
    : prompt_(*manifest.prompt), placement_(placement) {
  if (prompt_.kind == "text_features") {
    tokenizer_ = std::make_unique<T5Tokenizer>(join_path(manifest.directory, manifest.tokenizer->file),
                                               *manifest.tokenizer);
    encoder_ = std::make_unique<TextEncoder>(manifest, placement);
  } else if (prompt_.kind != "class") {
    throw Error(ExitCode::bundle, "bundle " + manifest.directory + ": prompts of kind '" + prompt_.kind +
                                      "' cannot be drawn by this version");
  }
}

Condition PromptEncoder::encode(const Request& request) const {
  const auto integers = at::dtype(at::kLong).device(placement_.device);
  if (!tokenizer_) return {at::full({1, 1}, *request.class_id, integers), at::ones({1, 1}, integers)};
  const at::Tensor ids = at::tensor(tokenizer_->encode(request.prompt)).unsqueeze(0).to(placement_.device);
  // The encoder sees the valid ids only; padding afterwards gives the same rows for less work.
  const at::Tensor features = encoder_->encode(ids, at::ones_like(ids));
  const std::int64_t padding = prompt_.length - ids.size(1);
  return {at::constant_pad_nd(features, {0, 0, 0, padding}),
          at::constant_pad_nd(at::ones_like(ids), {0, padding})};
}

Prompts embed_prompts(const Target& target, const std::vector<Condition>& conditions, bool guided) {
  const c10::InferenceMode inference;
  std::vector<at::Tensor> rows, valid;
  for (const Condition& condition : conditions) {
    rows.push_back(target.embed_condition(condition.features, condition.mask));
    valid.push_back(condition.mask.sum(1));
    if (!guided) continue;
    rows.push_back(target.embed_unconditional(condition.mask));
    valid.push_back(valid.back());
  }
  return {at::cat(rows), at::cat(valid).cpu(), {}};
}

}  // namespace lamplighter

#include "bundle/modules/target.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include "base/format.h"
#include "bundle/manifest/text.h"
#include "kernels/attend/rounded_cache.h"
#include "lamplighter/error.h"

namespace lamplighter {
namespace {

Module load(const Manifest& manifest, const std::string& role, const std::vector<std::string>& methods,
            const Placement& placement) {
  const auto entry = manifest.modules.find(role);
  if (entry == manifest.modules.end()) {
    throw Error(ExitCode::bundle, "bundle " + manifest.directory + " has no " + role);
  }
  std::vector<std::string> all = methods;
  all.insert(all.end(), entry->second.methods.begin(), entry->second.methods.end());
  return {manifest.directory, entry->second, role, all, placement};
}

// Splits the two results of a method.
std::pair<at::Tensor, at::Tensor> call_for_two(const Module& module, const std::string& method,
                                               const std::vector<at::Tensor>& inputs,
                                               const std::string& expected) {
  std::vector<at::Tensor> results = module.call(method, inputs);
  if (results.size() != 2) {
    throw Error(ExitCode::bundle,
                "target." + method + ": got " + counted(results.size(), "result") + ", expected " + expected);
  }
  return {std::move(results[0]), std::move(results[1])};
}

// Compares the width of a result with the manifest's.
void check_width(const char* method, const char* what, const at::Tensor& result, const char* field,
                 std::int64_t width) {
  if (result.dim() > 0 && result.size(-1) == width) return;
  throw Error(ExitCode::bundle, std::string("target.") + method + ": got " + what + " of width " +
                                    (result.dim() > 0 ? std::to_string(result.size(-1)) : "0") +
                                    ", the manifest says target." + field + " " + std::to_string(width));
}

}  // namespace

// Prompts of tokens are embedded like all tokens.
std::vector<std::string> target_methods(const PromptEntry& prompt) {
  std::vector<std::string> methods{"embed", "forward", "logits"};
  if (prompt.kind != "tokens") methods.insert(methods.end(), {"embed_condition", "embed_unconditional"});
  return methods;
}

Target::Target(const Manifest& manifest, const Placement& placement)
    : Target(manifest, load(manifest, "target", target_methods(*manifest.prompt), placement)) {}

Target::Target(Manifest manifest, Module module)
    : manifest_(std::move(manifest)), module_(std::move(module)) {
  check_head();
}

void Target::check_head() const {
  // Runs the head once: an archive that disagrees with its manifest fails here.
  const std::int64_t width = manifest_.target.hidden;
  const auto hidden = at::zeros({1, 1, width}, at::dtype(placement().dtype).device(placement().device));
  at::Tensor result;
  try {
    result = logits(hidden);
  } catch (const Error& error) {
    throw Error(error.code(),
                "the manifest says target.hidden " + std::to_string(width) + ": " + error.what());
  }
  check_width("logits", "logits", result, "head", manifest_.target.head);
}

at::Tensor Target::embed_condition(const at::Tensor& features, const at::Tensor& mask) const {
  return module_("embed_condition", {features, mask});
}

at::Tensor Target::embed_unconditional(const at::Tensor& mask) const {
  return module_("embed_unconditional", {mask});
}

at::Tensor Target::embed(const at::Tensor& ids) const {
  return module_("embed", {ids});
}

Target::Output Target::forward(const at::Tensor& x, const at::Tensor& positions, const at::Tensor& tree_mask,
                               const at::Tensor& lengths, const at::Tensor& cache) const {
  auto [one, two] =
      call_for_two(module_, "forward", {x, positions, tree_mask, lengths, cache}, "hidden and features");
  check_width("forward", "hidden states", one, "hidden", manifest_.target.hidden);
  check_width("forward", "features", two, "features", manifest_.target.features);
  return {std::move(one), std::move(two)};
}

Target::Output Target::forward_features(const at::Tensor& layers, const at::Tensor& x,
                                        const at::Tensor& positions, const at::Tensor& tree_mask,
                                        const at::Tensor& lengths, const at::Tensor& cache) const {
  auto [one, two] = call_for_two(module_, kForwardFeatures, {x, positions, tree_mask, lengths, cache, layers},
                                 "hidden and features");
  check_width(kForwardFeatures, "hidden states", one, "hidden", manifest_.target.hidden);
  return {std::move(one), std::move(two)};
}

Target::Part Target::forward_layers(std::int64_t first, std::int64_t end, const at::Tensor& residual,
                                    const at::Tensor& positions, const at::Tensor& tree_mask,
                                    const at::Tensor& lengths, const at::Tensor& cache) const {
  const at::Tensor layers = at::tensor({first, end}, at::kLong);
  auto [one, two] =
      call_for_two(module_, kForwardLayers, {residual, positions, tree_mask, lengths, cache, layers},
                   "rows and their norm");
  return {std::move(one), std::move(two)};
}

at::Tensor Target::logits(const at::Tensor& hidden) const {
  return gap_.codes > 0 ? gap_.filled(module_(kTextLogits, {hidden})) : module_("logits", {hidden});
}

Target Target::for_text(Manifest text) const {
  Target target = *this;
  target.gap_ = {manifest_.tokens.first_image_id, manifest_.tokens.codebook_size};
  target.manifest_ = std::move(text);
  target.check_head();
  return target;
}

at::Tensor Target::make_cache(std::int64_t sequences, std::int64_t slots) const {
  const auto& shape = manifest_.cache;
  const bool rounded = placement().rounded_cache;
  return at::empty({shape.layers, 2, sequences, shape.kv_heads, slots,
                    rounded ? shape.head_dim + kRowScaleBytes : shape.head_dim},
                   at::dtype(rounded ? at::kChar : placement().dtype).device(placement().device));
}

TextEncoder::TextEncoder(const Manifest& manifest, const Placement& placement)
    : module_(load(manifest, "text_encoder", {"encode"}, placement)) {}

at::Tensor TextEncoder::encode(const at::Tensor& ids, const at::Tensor& mask) const {
  return module_("encode", {ids, mask});
}

ImageDecoder::ImageDecoder(const Manifest& manifest, const c10::Device& device)
    : module_(load(manifest, "image_decoder", {"decode"}, {device, c10::kFloat})) {}

at::Tensor ImageDecoder::decode(const at::Tensor& codes) const {
  return module_("decode", {codes});
}

ImageEncoder::ImageEncoder(const Manifest& manifest, const c10::Device& device)
    : module_(load(manifest, "image_encoder", {"latents", "nearest"}, {device, c10::kFloat})) {}

at::Tensor ImageEncoder::latents(const at::Tensor& rgb) const {
  return module_("latents", {rgb});
}

at::Tensor ImageEncoder::nearest(const at::Tensor& latents) const {
  return module_("nearest", {latents});
}

}  // namespace lamplighter

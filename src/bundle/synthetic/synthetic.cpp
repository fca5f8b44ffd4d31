#include "bundle/synthetic/synthetic.h"

#include <c10/core/InferenceMode.h>

#include "bundle/modules/target.h"
#include "bundle/synthetic/modules.h"

namespace lamplighter {
namespace {

constexpr const char* kDrafter = "synthetic";

}  // namespace

Manifest synthetic_manifest(const SyntheticShape& shape, c10::ScalarType dtype) {
  const std::string stored = dtype == at::kFloat ? "float32" : dtype == at::kHalf ? "float16" : "bfloat16";
  Manifest manifest;
  manifest.name = manifest.directory = "synthetic " + shape.name;
  manifest.family = shape.chameleon ? "chameleon" : "llamagen-t2i";
  manifest.source = "random weights";
  manifest.modules["target"] = {"", stored, {kForwardLayers, kForwardFeatures}};
  PromptEntry& prompt = manifest.prompt.emplace();
  prompt.kind = shape.chameleon ? "tokens" : "text_features";
  prompt.length = shape.prompt_length;
  prompt.align = shape.chameleon || shape.learned_positions ? "start" : "end";
  prompt.features = shape.chameleon ? 0 : shape.prompt_features;
  if (shape.chameleon) prompt.unconditional.assign(static_cast<std::size_t>(shape.unconditional_length), 0);
  manifest.tokens.vocabulary = shape.ids();
  manifest.tokens.first_image_id = shape.first_image_id;
  manifest.tokens.codebook_size = shape.vocabulary;
  const Grid grid = shape.grid();
  manifest.grids = {grid};
  manifest.sampling = shape.sampling;
  manifest.schedule = shape.schedule;
  manifest.target = {shape.hidden, shape.hidden, shape.vocabulary, shape.head_width > 0 ? 2 : 1};
  manifest.cache = {shape.layers, shape.kv_heads, shape.head_dim, shape.prompt_length + grid.length()};
  if (shape.drafter) {
    DraftModelEntry& drafter = manifest.drafters[kDrafter];
    manifest.first_drafter = kDrafter;
    drafter.module.dtype = stored;
    drafter.layers = 1;
    drafter.kv_heads = shape.kv_heads;
    drafter.head_dim = shape.head_dim;
    if (!shape.chameleon) drafter.prompt_id = 0;
    drafter.max_length = manifest.cache.max_length;
  }
  return manifest;
}

SyntheticBundle make_synthetic(const SyntheticShape& shape, const Placement& placement,
                               const BytesMade& made) {
  const c10::InferenceMode inference;
  SyntheticModules modules = make_modules(shape, placement, made);
  std::vector<std::string> methods{"embed", "forward", "logits", kForwardLayers, kForwardFeatures};
  if (!shape.chameleon) methods.insert(methods.end(), {"embed_condition", "embed_unconditional"});
  Module target(modules.target, "target", methods, placement);
  const std::int64_t read = target_bytes(modules.target, shape);  // as packed
  SyntheticBundle bundle{synthetic_manifest(shape, placement.dtype), std::move(target), std::nullopt, read,
                         0};
  if (modules.drafter) {
    const std::vector<std::string> entries{"embed", "forward", "logits"};
    bundle.drafter.emplace(*modules.drafter, "drafter", entries, placement);
    bundle.drafter_bytes = drafter_bytes(*modules.drafter, shape);
  }
  return bundle;
}

}  // namespace lamplighter

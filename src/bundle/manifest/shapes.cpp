#include "bundle/manifest/sections.h"

namespace lamplighter {
namespace {

constexpr std::int64_t kMaxChannels = 1 << 10, kMaxSteps = 1000;  // of continuous tokens

void read_tokens(JsonReader tokens, Manifest& manifest) {
  if (tokens.has("kind")) manifest.tokens.kind = tokens.choice("kind", {"codes", "continuous"});
  if (manifest.is_continuous()) {
    manifest.tokens.channels = tokens.integer("channels", 1, kMaxChannels);
  } else {
    manifest.tokens.vocabulary = tokens.integer("vocabulary", 1, kMaxIds);
    manifest.tokens.first_image_id = tokens.integer("first_image_id", 0, kMaxIds);
    manifest.tokens.codebook_size = tokens.integer("codebook_size", 1, kMaxIds);
  }
  tokens.finish();
}

// What continuous tokens are drawn by.
void read_diffusion(JsonReader diffusion, Manifest& manifest) {
  manifest.diffusion.steps = diffusion.integer("steps", 2, kMaxSteps);
  manifest.diffusion.respacing = diffusion.text("respacing");
  diffusion.finish();
}

}  // namespace

void read_shapes(JsonReader& reader, Manifest& manifest) {
  if (reader.has("tokens")) read_tokens(reader.object("tokens"), manifest);
  const bool codes = !manifest.is_continuous();
  if (!codes) read_diffusion(reader.object("diffusion"), manifest);
  if (reader.has("target")) {
    JsonReader target = reader.object("target");
    manifest.target.hidden = target.integer("hidden", 1, kMaxSize);
    if (codes) manifest.target.features = target.integer("features", 1, kMaxSize);
    if (codes) manifest.target.head = target.integer("head", 1, kMaxIds);
    target.finish();
  }
  if (reader.has("cache")) {
    JsonReader cache = reader.object("cache");
    manifest.cache.layers = cache.integer("layers", 1, kMaxSize);
    manifest.cache.kv_heads = cache.integer("kv_heads", 1, kMaxSize);
    manifest.cache.head_dim = cache.integer("head_dim", 2, kMaxSize);
    manifest.cache.max_length = cache.integer("max_length", 1, kMaxSize);
    cache.finish();
  }
  if (reader.has("decoder")) {
    JsonReader decoder = reader.object("decoder");
    if (codes) manifest.decoder.codebook_size = decoder.integer("codebook_size", 1, kMaxIds);
    manifest.decoder.downsample = decoder.integer("downsample", 1, kMaxSize);
    if (decoder.has("pixels"))
      manifest.decoder.pixels = decoder.choice("pixels", {"round", "truncate", "nearest"});
    decoder.finish();
  }
}

}  // namespace lamplighter

#include "bundle/synthetic/shape.h"

#include "base/format.h"
#include "base/message.h"
#include "lamplighter/error.h"

namespace lamplighter {
namespace {

SyntheticShape llamagen(const char* name, std::int64_t layers, std::int64_t heads, std::int64_t ffn,
                        int grid) {
  SyntheticShape shape;
  shape.name = name;
  shape.vocabulary = 16384;
  shape.layers = layers;
  shape.heads = shape.kv_heads = heads;
  shape.head_dim = 64;
  shape.hidden = heads * shape.head_dim;
  shape.ffn = ffn;
  shape.prompt_length = 120;
  shape.prompt_features = 2048;
  shape.rows = shape.columns = grid;
  shape.sampling.cfg_scale = 7.5F;
  shape.sampling.top_k = 1000;
  return shape;
}

// The Chameleon family (Chameleon team 2024) with 7 billion parameters; a caption of usual length.
SyntheticShape chameleon(const char* name, int grid, bool row_ends, std::int64_t unconditional) {
  SyntheticShape shape;
  shape.name = name;
  shape.chameleon = true;
  shape.vocabulary = 8192;
  shape.embedding = 65536;
  shape.first_image_id = 4;
  shape.layers = shape.heads = shape.kv_heads = 32;
  shape.head_dim = 128;
  shape.hidden = 4096;
  shape.ffn = 11008;
  shape.prompt_length = 60;
  shape.unconditional_length = unconditional;
  shape.rows = shape.columns = grid;
  shape.row_ends = row_ends;
  shape.sampling.cfg_scale = 3;
  shape.sampling.top_k = 2000;
  return shape;
}

// Lumina-mGPT 2.0 (Xin et al. 2025): the same network with more ids, whose images have four times the
// codes.
SyntheticShape lumina2(const char* name, int grid) {
  SyntheticShape shape = chameleon(name, grid, true, 3);
  shape.vocabulary = 16384;
  shape.embedding = 171385;
  shape.first_image_id = 155000;
  shape.sampling.cfg_scale = 4;
  shape.sampling.top_k = 4096;
  shape.schedule.kind = "decay";
  shape.schedule.floor = 4;
  return shape;
}

// Janus-Pro (Chen et al. 2025): 384 x 384 pixels; the padded prompt without a caption is as long as the
// other.
SyntheticShape janus(const char* name, std::int64_t layers, std::int64_t heads, std::int64_t ffn) {
  SyntheticShape shape;
  shape.name = name;
  shape.chameleon = true;
  shape.vocabulary = 16384;
  shape.first_image_id = 102400;
  shape.layers = layers;
  shape.heads = shape.kv_heads = heads;
  shape.head_dim = 128;
  shape.hidden = shape.head_width = heads * shape.head_dim;
  shape.ffn = ffn;
  shape.prompt_length = shape.unconditional_length = 40;
  shape.rows = shape.columns = 24;
  shape.sampling.cfg_scale = 5;
  return shape;
}

// SimpleAR with half a billion parameters (Wang et al. 2025): 1024 x 1024 pixels of Cosmos' codes; its
// negative prompt is longer than a caption of usual length.
SyntheticShape simplear() {
  SyntheticShape shape;
  shape.name = "simplear-0.5b-1024";
  shape.chameleon = shape.qkv_bias = true;
  shape.vocabulary = 64000;
  shape.first_image_id = 151672;
  shape.layers = 24;
  shape.heads = 14;
  shape.kv_heads = 2;
  shape.head_dim = 64;
  shape.hidden = 896;
  shape.ffn = 4864;
  shape.prompt_length = 40;
  shape.unconditional_length = 36;
  shape.rows = shape.columns = 64;
  shape.sampling.cfg_scale = 6;
  return shape;
}

// Tar with 1.5 billion parameters (Han et al. 2025): 27 x 27 codes of TA-Tok, without guidance.
SyntheticShape tar() {
  SyntheticShape shape = simplear();
  shape.name = "tar-1.5b-378";
  shape.vocabulary = 65536;
  shape.embedding = 217206;
  shape.first_image_id = 151670;
  shape.layers = 28;
  shape.heads = 12;
  shape.head_dim = 128;
  shape.hidden = 1536;
  shape.ffn = 8960;
  shape.rows = shape.columns = 27;
  shape.sampling.cfg_scale = 1;
  shape.sampling.top_k = 1200;
  shape.sampling.top_p = 0.95F;
  return shape;
}

// The same with seven billion.
SyntheticShape tar_7b() {
  SyntheticShape shape = tar();
  shape.name = "tar-7b-378";
  shape.layers = shape.heads = 28;
  shape.kv_heads = 4;
  shape.hidden = 3584;
  shape.ffn = 18944;
  return shape;
}

// Tar's de-tokenizer: LlamaGen with 30 layers behind the features of 27 x 27 codes.
SyntheticShape tar_decoder(const char* name, int grid) {
  SyntheticShape shape = llamagen(name, 30, 20, 3584, grid);
  shape.learned_positions = true;
  shape.prompt_length = 729;
  shape.prompt_features = 1152;
  shape.sampling.cfg_scale = 4;
  shape.sampling.top_k = 0;
  return shape;
}

// Emu3-Gen (Wang et al. 2024): 720 x 720 pixels; the row end's id here is the last one of the vocabulary. Its
// negative prompt is as long as a caption of usual length.
SyntheticShape emu3() {
  SyntheticShape shape = chameleon("emu3-720", 90, true, 60);
  shape.llama = true;
  shape.vocabulary = 32768;
  shape.embedding = 184622;
  shape.first_image_id = 151853;
  shape.kv_heads = 8;
  shape.ffn = 14336;
  shape.sampling.top_k = 2048;
  return shape;
}

// Emu3.5-Image (BAAI 2025): 1168 x 880 pixels. Its heads together are wider than the network.
SyntheticShape emu35() {
  SyntheticShape shape = emu3();
  shape.name = "emu3.5-1168";
  shape.head_rms = true;
  shape.vocabulary = 131072;
  shape.embedding = 282927;
  shape.first_image_id = 151854;
  shape.layers = shape.heads = 64;
  shape.hidden = 5120;
  shape.ffn = 25600;
  shape.unconditional_length = 20;
  shape.rows = 55;
  shape.columns = 73;
  shape.sampling.cfg_scale = 5;
  shape.sampling.top_k = 5120;
  return shape;
}

// The autoregressive stage of GLM-Image (Z.ai 2026): 1024 x 1024 pixels, without guidance.
SyntheticShape glm_image() {
  SyntheticShape shape = chameleon("glm-image-1024", 32, false, 60);
  shape.qkv_bias = shape.branch_norms = true;
  shape.vocabulary = 16384;
  shape.embedding = 168064;
  shape.first_image_id = 0;
  shape.layers = 40;
  shape.kv_heads = 2;
  shape.ffn = 13696;
  shape.preview_rows = shape.preview_columns = 16;
  shape.sampling = {};
  shape.sampling.cfg_scale = 1;
  shape.sampling.temperature = 0.9F;
  shape.sampling.top_p = 0.75F;
  shape.sampling.top_k = 0;
  return shape;
}

const std::vector<SyntheticShape>& published() {
  static const std::vector<SyntheticShape> shapes{llamagen("llamagen-l-256", 24, 16, 2816, 16),
                                                  llamagen("llamagen-xl-256", 36, 20, 3584, 16),
                                                  llamagen("llamagen-xl-512", 36, 20, 3584, 32),
                                                  chameleon("anole-512", 32, false, 2),
                                                  chameleon("lumina-768", 48, true, 3),
                                                  lumina2("lumina2-768", 96),
                                                  janus("janus-pro-1b", 24, 16, 5632),
                                                  janus("janus-pro-7b", 30, 32, 11008),
                                                  simplear(),
                                                  emu3(),
                                                  emu35(),
                                                  glm_image(),
                                                  tar(),
                                                  tar_7b(),
                                                  tar_decoder("tar-decoder-256", 16),
                                                  tar_decoder("tar-decoder-512", 32),
                                                  tar_decoder("tar-decoder-1024", 64)};
  return shapes;
}

// Numbers of what makes rows of a prompt's features, learned positions included.
std::int64_t condition_numbers(const SyntheticShape& shape) {
  if (shape.chameleon) return 0;
  if (shape.learned_positions) return shape.hidden * (shape.prompt_features + 1 + shape.places());
  return (shape.hidden + shape.prompt_length) * shape.prompt_features + shape.hidden * shape.hidden;
}

// Numbers of the head's weights.
std::int64_t head_numbers(const SyntheticShape& shape) {
  if (shape.head_width == 0) return shape.vocabulary * shape.hidden;
  return shape.head_width * (shape.hidden + 1) + shape.vocabulary * (shape.head_width + 1);
}

}  // namespace

Grid SyntheticShape::grid() const {
  constexpr int kDownsample = 16;
  Grid grid;
  grid.rows = rows;
  grid.columns = columns;
  grid.width = columns * kDownsample;
  grid.height = rows * kDownsample;
  grid.preview_rows = preview_rows;
  grid.preview_columns = preview_columns;
  if (row_ends) grid.row_end = {row_end()};
  return grid;
}

std::vector<std::string> synthetic_names() {
  std::vector<std::string> names;
  for (const SyntheticShape& shape : published()) names.push_back(shape.name);
  return names;
}

SyntheticShape synthetic_shape(const std::string& name, std::optional<std::int64_t> layers) {
  std::string known;
  for (SyntheticShape shape : published()) {
    known += (known.empty() ? "" : ", ") + shape.name;
    if (shape.name != name) continue;
    if (!layers || *layers == shape.layers) return shape;
    if (*layers < 1 || *layers > shape.layers) {
      throw Error(ExitCode::usage, "layers: got " + std::to_string(*layers) + ", expected 1 to " +
                                       std::to_string(shape.layers) + " for " + name);
    }
    shape.name += " with " + std::to_string(*layers) + " of " + counted(shape.layers, "layer");
    shape.layers = *layers;
    return shape;
  }
  throw Error(ExitCode::usage, "synthetic shape: got " + quote(name) + ", expected " + known);
}

std::int64_t weight_bytes(const SyntheticShape& shape, c10::ScalarType dtype) {
  const std::int64_t width = shape.heads * shape.head_dim, kv_width = shape.kv_heads * shape.head_dim;
  const std::int64_t bias = shape.qkv_bias ? width + 2 * kv_width : 0;
  const std::int64_t block = shape.hidden * (2 * width + 2 * kv_width + 3 * shape.ffn) + bias;
  const std::int64_t table = shape.hidden * shape.ids();
  std::int64_t numbers = shape.layers * block + table + head_numbers(shape) + condition_numbers(shape);
  if (shape.drafter) numbers += block + table + head_numbers(shape) + 2 * shape.hidden * shape.hidden;
  return numbers * static_cast<std::int64_t>(c10::elementSize(dtype));
}

}  // namespace lamplighter

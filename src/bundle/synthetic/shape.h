#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lamplighter/bundle.h"
#include "lamplighter/options.h"

namespace lamplighter {

// Sizes of a decoder and of its EAGLE drafter. The default is LlamaGen (Sun et al. 2024). With `chameleon` it
// is Anole or Lumina-mGPT: prompts are tokens, query and key heads are normed, rotations follow the position.
// With a `head_width` besides it is Janus-Pro (Chen et al. 2025): a head of two layers with biases, and no
// norms of query and key heads. With `qkv_bias` it is SimpleAR (Wang et al. 2025) or Tar (Han et al. 2025), a
// Qwen2: biases of queries, keys and values in place of the norms. With `llama` it is Emu3 (Wang et al.
// 2024), which has neither. With `branch_norms` besides `qkv_bias` it is GLM-Image (Z.ai 2026), a GLM-4,
// whose images follow a preview. With `llama` and `head_rms` it is Emu3.5 (BAAI 2025): an RMSNorm of query
// and key heads. With `learned_positions` it is LlamaGen as Tar's de-tokenizer: they replace the rotations,
// and prompts are features of codes.
struct SyntheticShape {
  std::string name = "toy";
  bool chameleon = false;
  std::int64_t vocabulary = 8;  // ids of the head: codes
  std::int64_t embedding = 0;   // ids of the embedding; 0: the codes and the row end
  std::int64_t first_image_id = 0;
  bool qkv_bias = false, llama = false, branch_norms = false, head_rms = false;
  bool learned_positions = false;
  std::int64_t head_width = 0;  // between the layers of the head; 0: it is one product
  std::int64_t hidden = 16, layers = 2, heads = 2, kv_heads = 2, head_dim = 8, ffn = 32;
  std::int64_t prompt_length = 3, prompt_features = 8;
  std::int64_t unconditional_length = 1;  // ids of the prompt without a caption (chameleon)
  int rows = 2, columns = 2;
  int preview_rows = 0, preview_columns = 0;
  bool row_ends = false;      // a forced token, the id after the codes, between their rows
  SamplingOptions sampling;   // the manifest's defaults
  GuidanceSchedule schedule;  // the manifest's
  bool drafter = true;        // one layer of the same sizes, with an embedding and a head of its own
  double weight_scale = 1;    // standard deviation of a weight times the root of its inputs
  std::uint64_t seed = 1;     // of the weights

  std::int64_t row_end() const { return first_image_id + vocabulary; }  // the id
  // Rows of the learned positions: the last code is never read.
  std::int64_t places() const { return prompt_length + grid().length() - 1; }
  // Ids of the embedding.
  std::int64_t ids() const { return embedding > 0 ? embedding : row_end() + (row_ends ? 1 : 0); }
  bool has_head_norms() const { return chameleon && head_width == 0 && !qkv_bias && !llama; }
  Grid grid() const;
};

// Called while weights are made, with the bytes that there are by then, and those that there will be.
using BytesMade = std::function<void(std::int64_t bytes, std::int64_t all)>;

// The shapes of published models: llamagen-l-256, llamagen-xl-256, llamagen-xl-512, anole-512, lumina-768,
// lumina2-768, janus-pro-1b, janus-pro-7b, simplear-0.5b-1024, emu3-720, emu3.5-1168, glm-image-1024,
// tar-1.5b-378, tar-7b-378, tar-decoder-256, tar-decoder-512, tar-decoder-1024.
std::vector<std::string> synthetic_names();
// One of them, or with `layers` its first ones. Throws Error(ExitCode::usage) that lists them.
SyntheticShape synthetic_shape(const std::string& name, std::optional<std::int64_t> layers = std::nullopt);
// Bytes of all weights of target and drafter in this dtype.
std::int64_t weight_bytes(const SyntheticShape& shape, c10::ScalarType dtype);

}  // namespace lamplighter

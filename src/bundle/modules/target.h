#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <utility>
#include <vector>

#include "bundle/modules/code_gap.h"
#include "bundle/modules/module.h"

namespace lamplighter {

// The methods of a target's archive for prompts of this kind.
std::vector<std::string> target_methods(const PromptEntry& prompt);
// Optional: drafting with a part of the target calls it.
constexpr const char* kForwardLayers = "forward_layers";
// Optional: drafters that read inner layers call it.
constexpr const char* kForwardFeatures = "forward_features";

// The autoregressive model whose distribution is sampled. S = sequences, R = tokens of a call per sequence, H
// = hidden width, F = feature width, V = ids of the head. All state lives in tensors of the caller.
class Target {
 public:
  // Throws Error(ExitCode::bundle).
  Target(const Manifest& manifest, const Placement& placement);
  Target(Manifest manifest, Module module);

  // Embeds prompts, valid positions first; not for prompts of tokens. features [B, T, C] (or class ids int64
  // [B, 1]), mask int64 [B, T] -> [B, T, H].
  at::Tensor embed_condition(const at::Tensor& features, const at::Tensor& mask) const;
  // The same for the unconditional half of guidance.
  at::Tensor embed_unconditional(const at::Tensor& mask) const;
  // ids int64 [S, R] -> [S, R, H].
  at::Tensor embed(const at::Tensor& ids) const;

  struct Output {
    at::Tensor hidden;    // [S, R, H], after the final norm
    at::Tensor features;  // [S, R, F], input of drafters
  };
  // x [S, R, H], positions int64 [S, R], tree_mask int64 (empty = causal), lengths int64 [S]. Writes the
  // slots lengths[s] .. lengths[s] + R - 1 of `cache`, which the caller then keeps or overwrites.
  Output forward(const at::Tensor& x, const at::Tensor& positions, const at::Tensor& tree_mask,
                 const at::Tensor& lengths, const at::Tensor& cache) const;
  // The same with other features [S, R, n * H]: the inputs of `layers`, int64 [n] on the CPU and ascending,
  // side by side. Only where the manifest lists the method.
  Output forward_features(const at::Tensor& layers, const at::Tensor& x, const at::Tensor& positions,
                          const at::Tensor& tree_mask, const at::Tensor& lengths,
                          const at::Tensor& cache) const;
  // Runs the layers first .. end - 1. residual [S, R, H]: embeddings, or the output of the layers before.
  // Writes their part of the cache slots; the rest as above. Only where the manifest lists the method.
  struct Part {
    at::Tensor residual;  // [S, R, H], their output
    at::Tensor hidden;    // [S, R, H], its final norm
  };
  Part forward_layers(std::int64_t first, std::int64_t end, const at::Tensor& residual,
                      const at::Tensor& positions, const at::Tensor& tree_mask, const at::Tensor& lengths,
                      const at::Tensor& cache) const;
  // hidden [S, R, H] -> [S, R, V].
  at::Tensor logits(const at::Tensor& hidden) const;

  // The same weights for texts, as text_manifest() describes them: V counts all ids, and codes of images
  // have no probability.
  Target for_text(Manifest text) const;

  // Keys and values for `sequences` sequences: [layers, 2, S, kv_heads, slots, head_dim], or rounded
  // (kernels/attend/rounded_cache.h).
  at::Tensor make_cache(std::int64_t sequences, std::int64_t slots) const;

  std::int64_t layers() const { return manifest_.cache.layers; }
  const Manifest& manifest() const { return manifest_; }
  const Placement& placement() const { return module_.placement(); }

 private:
  // Throws unless the head gives what the manifest says.
  void check_head() const;

  Manifest manifest_;
  Module module_;
  CodeGap gap_;  // of texts
};

// Encodes captions: ids, mask int64 [B, T] -> [B, T, C].
class TextEncoder {
 public:
  TextEncoder(const Manifest& manifest, const Placement& placement);
  at::Tensor encode(const at::Tensor& ids, const at::Tensor& mask) const;

 private:
  Module module_;
};

// Decodes codebook indices or latents to pixels, in fp32 as the official programs do.
class ImageDecoder {
 public:
  ImageDecoder(const Manifest& manifest, const c10::Device& device);
  // codes int64 [B, rows, columns], or latents fp32 [B, C, rows, columns] of continuous tokens -> fp32
  // [B, 3, height, width], nominally in [-1, 1].
  at::Tensor decode(const at::Tensor& codes) const;

 private:
  Module module_;
};

// Encodes pixels as codebook indices, in fp32 as the official programs do.
class ImageEncoder {
 public:
  ImageEncoder(const Manifest& manifest, const c10::Device& device);
  // fp32 [B, 3, height, width] in [-1, 1] -> fp32 [B, C, rows, columns].
  at::Tensor latents(const at::Tensor& rgb) const;
  // fp32 [B, C, rows, columns] -> int64 [B, rows, columns], the nearest rows of the codebook.
  at::Tensor nearest(const at::Tensor& latents) const;

 private:
  Module module_;
};

}  // namespace lamplighter

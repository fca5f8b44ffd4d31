#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>

#include "bundle/placement.h"
#include "lamplighter/bundle.h"

namespace lamplighter {

// A network that draws continuous tokens, target or drafter (MAR, Li et al. 2024, arXiv 2406.11838): an
// encoder and decoder that sees some tokens of a picture gives a condition at all others, and the chain of
// its diffusion head makes a token of one. B = contexts, L = positions in raster order, C = channels, D =
// width of a condition, N = tokens, T = denoising steps; all of it fp32. Without state.
class ContinuousModel {
 public:
  virtual ~ContinuousModel() = default;

  // latents [B, L, C], visible bool [B, L], classes int64 [B] -> [B, L, D], valid where nothing is visible.
  // Rows of `latents` that are not visible are not read. The class after the last is none.
  virtual at::Tensor context(const at::Tensor& latents, const at::Tensor& visible,
                             const at::Tensor& classes) const = 0;

  // The Gaussian of the last denoising step, and what came before it.
  struct Chain {
    at::Tensor mean, deviation;  // [N, C], temperature included
    at::Tensor log_deviations;   // fp64 [N, C]: sums over all steps but the last, without temperature
  };
  // z [N, D], unconditional [N, D], or [0, D] for no guidance; scale [N] of the guidance, start [N, C], noise
  // [N, T, C], of which index 0, the last step's, is not read; temperature [N].
  virtual Chain denoise(const at::Tensor& z, const at::Tensor& unconditional, const at::Tensor& scale,
                        const at::Tensor& start, const at::Tensor& noise,
                        const at::Tensor& temperature) const = 0;

  virtual c10::Device device() const { return c10::kCPU; }
};

// Bytes that a pass of the target takes for every context, at least: fp32 latents, and of every position what
// a layer reads and its widest product, four times as wide.
std::int64_t context_bytes(const Manifest& manifest, const Grid& grid);

// The bundle's target, or its drafter of this name. A token is drawn at once, so that an archive which
// disagrees with the manifest's channels or steps is caught before any work. Throws Error(ExitCode::bundle).
std::unique_ptr<ContinuousModel> load_continuous_target(const Manifest& manifest, const Placement& placement);
std::unique_ptr<ContinuousModel> load_continuous_drafter(const Manifest& manifest, const std::string& name,
                                                         const Placement& placement);

}  // namespace lamplighter

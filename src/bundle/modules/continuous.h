#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>

#include "device/placement.h"
#include "lamplighter/bundle.h"

namespace lamplighter {

// A target or drafter of continuous tokens (MAR, Li et al. 2024, arXiv 2406.11838). An encoder and decoder
// that attends to some tokens of an image computes a condition for all others, and the diffusion head
// denoises a token from its condition. B = contexts, L = positions in raster order, C = channels, D = width
// of a condition, N = tokens, T = denoising steps. Everything is fp32, and calls keep no state.
class ContinuousModel {
 public:
  virtual ~ContinuousModel() = default;

  // latents [B, L, C], visible bool [B, L], classes int64 [B] -> [B, L, D], valid at positions that are not
  // visible. Their latents are not read. The class after the last one stands for none.
  virtual at::Tensor context(const at::Tensor& latents, const at::Tensor& visible,
                             const at::Tensor& classes) const = 0;

  // The Gaussian of the last denoising step, and the deviations of the steps before it.
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

// Least bytes that a pass of the target needs for each context: fp32 latents, and for each position the input
// of a layer and its widest product, four times as wide.
std::int64_t context_bytes(const Manifest& manifest, const Grid& grid);

// Loads the bundle's target, or its drafter of this name, and generates a token: an archive that disagrees
// with the manifest's channels or steps fails here. Throws Error(ExitCode::bundle).
std::unique_ptr<ContinuousModel> load_continuous_target(const Manifest& manifest, const Placement& placement);
std::unique_ptr<ContinuousModel> load_continuous_drafter(const Manifest& manifest, const std::string& name,
                                                         const Placement& placement);

}  // namespace lamplighter

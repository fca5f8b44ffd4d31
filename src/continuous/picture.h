#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "bundle/continuous.h"
#include "continuous/draws.h"
#include "lamplighter/pipeline.h"

namespace lamplighter {

// What all pictures of a run have in common.
struct ContinuousShape {
  std::int64_t positions = 0;    // L
  std::int64_t channels = 0;     // C
  std::int64_t steps = 0;        // T, of a token's denoising
  std::int64_t classes = 0;      // the class of this number is none
  bool linear_guidance = false;  // grows with the share of tokens drawn; false: constant
};

struct ContinuousRequest {
  std::int64_t class_id = 0;
  std::uint64_t seed = 0;
  float cfg_scale = 1, temperature = 1;

  bool is_guided() const { return cfg_scale > 1; }
};

// A picture that is drawn.
struct ContinuousPicture {
  ContinuousPicture(const ContinuousShape& shape, std::int64_t number, const ContinuousRequest& request,
                    c10::Device device);

  bool is_complete() const { return drawn == static_cast<std::int64_t>(order.size()); }
  std::int64_t left() const { return static_cast<std::int64_t>(order.size()) - drawn; }
  std::int64_t place(std::int64_t k) const { return order[static_cast<std::size_t>(k)]; }

  // The next tokens [n, C] come into their places. The cycle that gave them is recorded, unless it is a pass
  // of the target for the first token alone, as elsewhere.
  void commit(const at::Tensor& tokens, const Cycle& cycle, bool has_drafts);

  std::int64_t number;
  ContinuousRequest request;
  Draws draws;
  std::vector<std::int64_t> order;  // position of the k-th token
  at::Tensor latents;               // fp32 [L, C], raster order; what is not visible is not read
  at::Tensor visible;               // bool [L]
  std::int64_t drawn = 0;           // tokens that are committed, the first ones of the order
  std::int64_t rounds = 0;          // that it took part in
  ContinuousModel::Chain drafted;   // rule released: behind those, tokens that are not judged yet: [n, C]
  Statistics statistics;
};

// The guidance of a token after which `masked` tokens are left: MAR counts one at least.
float guidance_of(const ContinuousShape& shape, const ContinuousRequest& request, std::int64_t masked);

// int64 [n] on the CPU.
at::Tensor places_of(const ContinuousPicture& picture, std::int64_t first, std::int64_t count);

}  // namespace lamplighter

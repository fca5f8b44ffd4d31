#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "bundle/modules/continuous.h"
#include "continuous/random_numbers.h"
#include "lamplighter/pipeline.h"

namespace lamplighter {

// What all images of a run have in common.
struct ContinuousShape {
  std::int64_t positions = 0;  // L
  std::int64_t channels = 0;   // C
  std::int64_t steps = 0;      // T, of a token's denoising
  std::int64_t classes = 0;    // the class of this number is none
};

struct ContinuousRequest {
  std::int64_t class_id = 0;
  std::uint64_t seed = 0;
  float temperature = 1;
  std::vector<float> scales;  // [L], of the guidance of the k-th token (bundle/guidance.h); empty: none
  std::shared_ptr<const RandomNumbers> samples = nullptr;  // null: made from the seed

  bool is_guided() const { return !scales.empty(); }
  // That of a token behind which, and behind those sampled with it, `masked` tokens are left; 1: no guidance.
  float scale(std::int64_t masked) const {
    return is_guided() ? scales[scales.size() - 1 - static_cast<std::size_t>(masked)] : 1;
  }
};

// An image that is sampled.
struct ContinuousImage {
  ContinuousImage(const ContinuousShape& shape, std::int64_t number, const ContinuousRequest& request,
                  c10::Device device);

  bool is_complete() const { return sampled == static_cast<std::int64_t>(order.size()); }
  std::int64_t left() const { return static_cast<std::int64_t>(order.size()) - sampled; }
  std::int64_t position(std::int64_t k) const { return order[static_cast<std::size_t>(k)]; }

  // The next tokens [n, C] come into their positions. The cycle that gave them is recorded, unless it is a
  // pass of the target for the first token alone, as elsewhere.
  void commit(const at::Tensor& tokens, const Cycle& cycle, bool has_drafts);

  std::int64_t number;
  ContinuousRequest request;
  std::shared_ptr<const RandomNumbers> samples;
  std::vector<std::int64_t> order;  // position of the k-th token
  at::Tensor latents;               // fp32 [L, C], raster order; what is not visible is not read
  at::Tensor visible;               // bool [L]
  std::int64_t sampled = 0;         // tokens that are committed, the first ones of the order
  std::int64_t rounds = 0;          // that it took part in
  bool damaged = false;             // the target's numbers were none: its tokens say nothing
  ContinuousModel::Chain drafted;   // rule official: behind those, tokens that are not verified yet: [n, C]
  Statistics statistics;
};

// int64 [n] on the CPU.
at::Tensor positions_of(const ContinuousImage& image, std::int64_t first, std::int64_t count);

}  // namespace lamplighter

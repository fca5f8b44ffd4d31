#pragma once

#include <ATen/TensorOperators.h>

#include <vector>

#include "bundle/modules/continuous.h"
#include "continuous/continuous_image.h"

namespace lamplighter {

// One pass of a network: contexts, of images as they are or as they would be, and the tokens that are sampled
// in them. Results do not depend on what else is in the pass, beyond rounding.
class ContinuousBatch {
 public:
  explicit ContinuousBatch(const ContinuousShape& shape) : shape_(shape) {}

  // The tokens that are seen: latents [L, C], visible bool [L]; both are to stay as they are until run().
  void add_context(const ContinuousImage& image, const at::Tensor& latents, const at::Tensor& visible);
  // The k-th token of the image of the newest context, `masked` tokens being left after it.
  void add_token(std::int64_t k, std::int64_t masked);

  std::int64_t size() const { return static_cast<std::int64_t>(tokens_.size()); }

  struct Result {
    ContinuousModel::Chain chain;  // of the tokens, in the order in which they were added
    at::Tensor last_noise;         // fp32 [N, C], of the last step
    at::Tensor sample() const { return chain.mean + chain.deviation * last_noise; }
  };
  Result run(const ContinuousModel& model) const;

 private:
  struct Context {
    const ContinuousImage* image;
    at::Tensor latents, visible;
  };
  struct Token {
    std::int64_t context, position;
    float scale;
  };
  bool is_guided(const Token& token) const;
  ContinuousModel::Chain denoise(const ContinuousModel& model, const at::Tensor& z, bool guided,
                                 const std::vector<std::int64_t>& tokens, const at::Tensor& start,
                                 const at::Tensor& noise) const;

  ContinuousShape shape_;
  std::vector<Context> contexts_;
  std::vector<Token> tokens_;
};

// Which tokens of a target are finite numbers: bool [N] on the CPU.
at::Tensor finite_tokens(const ContinuousModel::Chain& chain);
// An image whose tokens are not, of `count` tokens from `first` on, is damaged.
void check_finite(ContinuousImage& image, const at::Tensor& finite, std::int64_t first, std::int64_t count);

}  // namespace lamplighter

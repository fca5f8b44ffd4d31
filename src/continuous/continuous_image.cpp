#include "continuous/continuous_image.h"

#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

namespace lamplighter {

ContinuousImage::ContinuousImage(const ContinuousShape& shape, std::int64_t its_number,
                                 const ContinuousRequest& its_request, c10::Device device)
    : number(its_number),
      request(its_request),
      samples(its_request.samples
                  ? its_request.samples
                  : std::make_shared<const RandomNumbers>(its_request.seed, shape.channels, shape.steps)),
      order(samples->order(shape.positions)),
      latents(at::zeros({shape.positions, shape.channels}, at::dtype(at::kFloat).device(device))),
      visible(at::zeros({shape.positions}, at::dtype(at::kBool).device(device))) {}

void ContinuousImage::commit(const at::Tensor& tokens, const Cycle& cycle, bool has_drafts) {
  const std::int64_t count = tokens.size(0);
  const at::Tensor positions = positions_of(*this, sampled, count).to(latents.device());
  latents.index_copy_(0, positions, tokens);
  visible.index_fill_(0, positions, true);
  for (std::int64_t k = sampled; k < sampled + count; ++k) statistics.order.push_back(position(k));
  statistics.tokens += count;
  statistics.draft_ms += cycle.draft_ms;
  statistics.score_ms += cycle.score_ms;
  statistics.verify_ms += cycle.verify_ms;
  statistics.commit_ms += cycle.commit_ms;
  statistics.cycle_ms += cycle.cycle_ms;
  if (sampled > 0 || count > 1 || has_drafts) {
    statistics.cycles.push_back(cycle);
    statistics.cycles.back().first = sampled;
    statistics.cycles.back().committed = count;
  }
  sampled += count;
}

at::Tensor positions_of(const ContinuousImage& image, std::int64_t first, std::int64_t count) {
  const std::int64_t* begin = image.order.data() + first;
  return at::tensor(at::ArrayRef<std::int64_t>(begin, static_cast<std::size_t>(count)), at::kLong);
}

}  // namespace lamplighter

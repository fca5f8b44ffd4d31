#include "continuous/picture.h"

#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

namespace lamplighter {

ContinuousPicture::ContinuousPicture(const ContinuousShape& shape, std::int64_t its_number,
                                     const ContinuousRequest& its_request, c10::Device device)
    : number(its_number),
      request(its_request),
      draws(its_request.draws ? its_request.draws
                              : std::make_shared<const Draws>(its_request.seed, shape.channels, shape.steps)),
      order(draws->order(shape.positions)),
      latents(at::zeros({shape.positions, shape.channels}, at::dtype(at::kFloat).device(device))),
      visible(at::zeros({shape.positions}, at::dtype(at::kBool).device(device))) {}

void ContinuousPicture::commit(const at::Tensor& tokens, const Cycle& cycle, bool has_drafts) {
  const std::int64_t count = tokens.size(0);
  const at::Tensor places = places_of(*this, drawn, count).to(latents.device());
  latents.index_copy_(0, places, tokens);
  visible.index_fill_(0, places, true);
  for (std::int64_t k = drawn; k < drawn + count; ++k) statistics.order.push_back(place(k));
  statistics.tokens += count;
  statistics.draft_ms += cycle.draft_ms;
  statistics.score_ms += cycle.score_ms;
  statistics.judge_ms += cycle.judge_ms;
  statistics.commit_ms += cycle.commit_ms;
  statistics.cycle_ms += cycle.cycle_ms;
  if (drawn > 0 || count > 1 || has_drafts) {
    statistics.cycles.push_back(cycle);
    statistics.cycles.back().first = drawn;
    statistics.cycles.back().committed = count;
  }
  drawn += count;
}

at::Tensor places_of(const ContinuousPicture& picture, std::int64_t first, std::int64_t count) {
  const std::int64_t* begin = picture.order.data() + first;
  return at::tensor(at::ArrayRef<std::int64_t>(begin, static_cast<std::size_t>(count)), at::kLong);
}

}  // namespace lamplighter

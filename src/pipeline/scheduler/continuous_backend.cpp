#include "pipeline/scheduler/continuous_backend.h"

#include <utility>

#include "bundle/manifest/guidance.h"

namespace lamplighter {

void ContinuousBackend::begin(const std::vector<const ResolvedRequest*>& requests,
                              const std::vector<PromptPointer>& /*upcoming*/) {
  for (const ResolvedRequest* request : requests) {
    images_[begun_] = std::make_unique<ContinuousImage>(
        run_.shape, begun_, to_continuous(manifest_, *request), run_.target->device());
    ++begun_;
    --free_;
  }
}

Step ContinuousBackend::step() {
  std::vector<ContinuousImage*> active;
  Step step;
  for (const auto& [number, image] : images_) {
    if (image->is_complete()) continue;
    active.push_back(image.get());
    step.images.push_back({number, image->sampled});
  }
  advance(run_, active);
  for (std::size_t i = 0; i < active.size(); ++i) {
    ImageStep& stepped = step.images[i];
    stepped.committed = active[i]->sampled - std::exchange(stepped.tokens, active[i]->sampled);
    stepped.is_complete = active[i]->is_complete();
    if (active[i]->damaged) stepped.failure = damaged_target();
    if (stepped.is_complete) ++free_;
  }
  return step;
}

void ContinuousBackend::drop(std::int64_t image) {
  if (!images_.at(image)->is_complete()) ++free_;
  images_.erase(image);
}

CompleteImage ContinuousBackend::take(std::int64_t image) {
  const std::unique_ptr<ContinuousImage> complete = std::move(images_.at(image));
  images_.erase(image);
  const at::Tensor latents = complete->latents.view({1, grid_.rows, grid_.columns, run_.shape.channels})
                                 .permute({0, 3, 1, 2})
                                 .contiguous();
  return {{grid_.rows, grid_.columns, {}},
          std::move(complete->statistics),
          [decode = decode_, latents](const Codes&) { return decode(latents); }};
}

ContinuousRequest to_continuous(const Manifest& manifest, const ResolvedRequest& request) {
  const SamplingOptions& sampling = request.sampling;
  ContinuousRequest continuous{*request.class_id, request.seed, sampling.temperature, {}};
  if (request.is_guided())
    continuous.scales = guidance_scales(manifest.schedule, *request.grid, sampling, request.grid->tokens());
  return continuous;
}

std::unique_ptr<Backend> ContinuousNetworks::backend(const ResolvedRequest& first, const RunLimits& limits) {
  return std::make_unique<ContinuousBackend>(manifest_, run_of(first.method->options, *first.grid),
                                             *first.grid, limits.slots, decode_);
}

ContinuousRun ContinuousNetworks::run_of(const MethodOptions& method, const Grid& grid) {
  ContinuousRun run;
  run.target = target_.get();
  if (!method.drafter.empty()) {
    std::unique_ptr<ContinuousModel>& drafter = drafters_[method.drafter];
    if (!drafter) drafter = load_continuous_drafter(manifest_, method.drafter, placement_);
    run.drafter = drafter.get();
  }
  run.shape = {grid.tokens(), manifest_.tokens.channels, manifest_.diffusion.steps,
               manifest_.prompt->classes};
  run.method = method;
  return run;
}

}  // namespace lamplighter

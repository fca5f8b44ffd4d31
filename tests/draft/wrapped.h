#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "draft/draft_method.h"

namespace lamplighter::test {

// Does what another draft method does, but for what tests change.
class Wrapped : public DraftMethod {
 public:
  explicit Wrapped(std::unique_ptr<DraftMethod> inner) : inner_(std::move(inner)) {}

  bool replayable() const override { return inner_->replayable(); }
  // The inner method runs in stages, which is what tests change.
  void allocate(const RunShape& shape, std::int64_t slots) override {
    RunShape in_stages = shape;
    in_stages.whole_cycles = false;
    inner_->allocate(in_stages, slots);
  }
  TreeShape shape() const override { return inner_->shape(); }
  at::Tensor order() const override { return inner_->order(); }
  void begin(const Prompts& prompts, const Prefilled& prefilled, const RunState& run) override {
    inner_->begin(prompts, prefilled, run);
  }
  Draft draft(const RunState& run) override { return inner_->draft(run); }
  Verified verify(const RunState& run, const Draft& draft, const Scores& scores, ops::Distributions target,
                  const ops::VerifyOptions& rule) const override {
    return inner_->verify(run, draft, scores, std::move(target), rule);
  }
  void update(const Draft& draft, const Scores& scores, const Verified& verified,
              const RunState& run) override {
    inner_->update(draft, scores, verified, run);
  }
  std::vector<PerImage> per_image() override { return inner_->per_image(); }
  void advance_for_benchmark(std::int64_t slots) override { inner_->advance_for_benchmark(slots); }

 private:
  std::unique_ptr<DraftMethod> inner_;
};

}  // namespace lamplighter::test

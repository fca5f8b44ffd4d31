#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "propose/proposer.h"

namespace lamplighter::test {

// Does what another proposer does, but for what tests change.
class Wrapped : public Proposer {
 public:
  explicit Wrapped(std::unique_ptr<Proposer> inner) : inner_(std::move(inner)) {}

  bool replayable() const override { return inner_->replayable(); }
  void allocate(const RunShape& shape, std::int64_t rows) override { inner_->allocate(shape, rows); }
  TreeShape shape() const override { return inner_->shape(); }
  at::Tensor order() const override { return inner_->order(); }
  void begin(const Prompts& prompts, const Prefilled& prefilled, const RunState& run) override {
    inner_->begin(prompts, prefilled, run);
  }
  Draft propose(const RunState& run) override { return inner_->propose(run); }
  void learn(const Draft& draft, const Scores& scores, const Judged& judged, const KeptRows& kept,
             const RunState& run) override {
    inner_->learn(draft, scores, judged, kept, run);
  }
  std::vector<PerImage> per_image() override { return inner_->per_image(); }
  void skip(std::int64_t rows) override { inner_->skip(rows); }

 private:
  std::unique_ptr<Proposer> inner_;
};

}  // namespace lamplighter::test

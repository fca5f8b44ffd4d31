#include "draft/drafters/medusa.h"

#include <vector>

#include "draft/drafters/candidates.h"
#include "draft/drafters/hidden_state.h"
#include "draft/method.h"

namespace lamplighter {
namespace {

class MedusaHeads {
 public:
  MedusaHeads(const DraftModel& network, std::int64_t depth) : network_(network), depth_(depth) {}
  // hidden [S, 1, H] of the target, after its final norm -> logits [S, K, V] of the next K tokens, as many as
  // the tree is deep or more.
  at::Tensor operator()(const at::Tensor& hidden) const {
    at::Tensor logits = network_.module()("heads", {hidden});
    network_.require_heads(logits.size(1), depth_);
    return logits;
  }

 private:
  const DraftModel& network_;
  std::int64_t depth_;
};

class Medusa : public DraftMethod {
 public:
  Medusa(const Method& method, const Models& models)
      : heads_(*models.drafter, method.tree->max_depth()),
        shape_(shape_of(*method.tree)),
        candidates_(method, *method.tree, models.target->placement().device),
        hidden_(method, *models.target) {}

  TreeShape shape() const override { return shape_; }

  void allocate(const RunShape& shape, std::int64_t /*rows*/) override { hidden_.allocate(shape); }
  std::vector<PerImage> per_image() override { return {hidden_.per_image()}; }

  Draft draft(const RunState& run) override { return candidates_.draft(run, heads_(hidden_.rows())); }

  void update(const Draft& /*draft*/, const Scores& scores, const Verified& verified,
              const RunState& run) override {
    hidden_.update(scores, verified, run);
  }

 private:
  const MedusaHeads heads_;
  TreeShape shape_;
  Candidates candidates_;
  HiddenState hidden_;
};

}  // namespace

std::unique_ptr<DraftMethod> make_medusa(const Method& method, const Models& models) {
  return std::make_unique<Medusa>(method, models);
}

}  // namespace lamplighter

#include "draft/drafters/medusa.h"

#include <vector>

#include "draft/drafters/candidates.h"
#include "draft/drafters/hidden_state.h"
#include "draft/method.h"

namespace lamplighter {
namespace {

class MedusaHeads {
 public:
  explicit MedusaHeads(const DraftModel& network) : module_(network.module()) {}
  // hidden [S, 1, H] of the target, after its final norm -> logits [S, K, V] of the next K tokens.
  at::Tensor operator()(const at::Tensor& hidden) const { return module_("heads", {hidden}); }

 private:
  const Module& module_;
};

class Medusa : public DraftMethod {
 public:
  Medusa(const Method& method, const Models& models)
      : heads_(*models.drafter),
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

#include "propose/drafters/medusa.h"

#include <vector>

#include "propose/drafters/candidates.h"
#include "propose/drafters/hidden_state.h"
#include "propose/method.h"

namespace lamplighter {
namespace {

class Medusa : public Proposer {
 public:
  Medusa(const Method& method, const Models& models)
      : drafter_(*models.drafter),
        shape_(shape_of(*method.tree)),
        candidates_(method, *method.tree, models.target->placement().device),
        hidden_(method, *models.target) {}

  TreeShape shape() const override { return shape_; }

  void allocate(const RunShape& shape, std::int64_t /*rows*/) override { hidden_.allocate(shape); }
  std::vector<PerImage> per_image() override { return {hidden_.per_image()}; }

  Draft propose(const RunState& run) override {
    return candidates_.draft(run, drafter_.heads(hidden_.rows()));
  }

  void learn(const Draft& /*draft*/, const Scores& scores, const Judged& judged, const KeptRows& /*kept*/,
             const RunState& run) override {
    hidden_.learn(scores, judged, run);
  }

 private:
  const Drafter& drafter_;
  TreeShape shape_;
  Candidates candidates_;
  HiddenState hidden_;
};

}  // namespace

std::unique_ptr<Proposer> make_medusa(const Method& method, const Models& models) {
  return std::make_unique<Medusa>(method, models);
}

}  // namespace lamplighter

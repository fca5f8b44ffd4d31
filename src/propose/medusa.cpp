#include "propose/medusa.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>

#include <algorithm>
#include <vector>

#include "propose/hidden_state.h"
#include "propose/method.h"

namespace lamplighter {
namespace {

class Medusa : public Proposer {
 public:
  Medusa(const Method& method, const Models& models)
      : drafter_(*models.drafter),
        sampled_(method.judge.sampled),
        shape_(shape_of(*method.tree)),
        candidates_(method.tree->max_children()),
        topology_(topology(*method.tree, models.target->placement().device)),
        hidden_(method, *models.target) {
    const Tree& tree = *method.tree;
    std::vector<std::int64_t> places, rows;  // of drafted nodes among the candidates; of all among the laws
    for (std::size_t node = 0; node < tree.depth.size(); ++node) {
      if (node > 0) places.push_back((tree.depth[node] - 1) * candidates_ + tree.rank[node]);
      rows.push_back(tree.draft_row[node] < 0 ? -1 : tree.depth[node]);
    }
    const c10::Device device = topology_.parents.device();
    places_ = integers(places, device);
    topology_.draft_rows = integers(rows, device).unsqueeze(0);
    depths_ = at::arange(shape_.depth, topology_.parents.options());
  }

  TreeShape shape() const override { return shape_; }

  void allocate(const RunShape& shape, std::int64_t /*rows*/) override { hidden_.allocate(shape); }
  std::vector<PerImage> per_image() override { return {hidden_.per_image()}; }

  Draft propose(const RunState& run) override {
    const at::Tensor logits = drafter_.heads(hidden_.rows()).narrow(1, 0, shape_.depth).contiguous();
    const auto [laws, tokens, conditional] =
        ops::draft_children(logits, filtering(run, run.draft_filter, depths_.unsqueeze(0), shape_.depth),
                            {run.seeds, run.steps, depths_, candidates_, sampled_});
    const at::Tensor drafted = tokens.flatten(1).index_select(1, places_);
    return {topology_, at::cat({run.root.unsqueeze(1), drafted}, 1), laws};
  }

  void learn(const Draft& /*draft*/, const Scores& scores, const Judged& judged, const KeptRows& /*kept*/,
             const RunState& run) override {
    hidden_.learn(scores, judged, run);
  }

 private:
  const Drafter& drafter_;
  bool sampled_;
  TreeShape shape_;
  std::int64_t candidates_;  // C, of every depth
  Topology topology_;
  at::Tensor places_;  // int64 [N - 1], of the D * C candidates
  at::Tensor depths_;  // int64 [D]: 0, 1, ..
  HiddenState hidden_;
};

}  // namespace

std::unique_ptr<Proposer> make_medusa(const Method& method, const Models& models) {
  return std::make_unique<Medusa>(method, models);
}

}  // namespace lamplighter

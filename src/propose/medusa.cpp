#include "propose/medusa.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <vector>

#include "propose/method.h"

namespace lamplighter {
namespace {

class Medusa : public Proposer {
 public:
  Medusa(const Method& method, const Models& models)
      : drafter_(*models.drafter),
        conditional_(method.conditional),
        sampled_(method.judge.sampled),
        shape_(shape_of(*method.tree)),
        candidates_(method.tree->max_children()),
        topology_(topology(*method.tree, models.target->placement().device)),
        width_(models.target->manifest().target.hidden),
        type_(models.target->placement().dtype) {
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

  void allocate(const RunShape& shape, std::int64_t /*rows*/) override {
    sequences_ = conditional_ ? shape.images : shape.sequences();
    hidden_ = at::zeros({sequences_, 1, width_}, depths_.options().dtype(type_));
  }

  Draft propose(const RunState& run) override {
    const at::Tensor logits = drafter_.heads(hidden_).narrow(1, 0, shape_.depth).contiguous();
    const auto [laws, tokens, conditional] =
        ops::draft_children(logits, filtering(run, run.draft_filter, depths_.unsqueeze(0), shape_.depth),
                            {run.seeds, run.steps, depths_, candidates_, sampled_});
    const at::Tensor drafted = tokens.flatten(1).index_select(1, places_);
    return {topology_, at::cat({run.root.unsqueeze(1), drafted}, 1), laws};
  }

  // Keeps the state that the new root was drawn from.
  void learn(const Draft& /*draft*/, const Scores& scores, const Judged& judged, const KeptRows& /*kept*/,
             const RunState& run) override {
    const at::Tensor last = judged.path.gather(1, judged.count.unsqueeze(1));
    const at::Tensor rows = rows_at(scores.hidden, per_sequence(last, run.guided));
    hidden_.copy_(conditional_ && run.guided ? rows.slice(0, 0, rows.size(0), 2) : rows);
  }

  std::vector<PerImage> per_image() override { return {{&hidden_, 0}}; }

 private:
  const Drafter& drafter_;
  bool conditional_, sampled_;
  TreeShape shape_;
  std::int64_t candidates_;  // C, of every depth
  Topology topology_;
  std::int64_t width_, sequences_ = 0;
  c10::ScalarType type_;
  at::Tensor places_;  // int64 [N - 1], of the D * C candidates
  at::Tensor depths_;  // int64 [D]: 0, 1, ..
  at::Tensor hidden_;  // [Sd, 1, H], of the target
};

}  // namespace

std::unique_ptr<Proposer> make_medusa(const Method& method, const Models& models) {
  return std::make_unique<Medusa>(method, models);
}

}  // namespace lamplighter

#include "draft/method.h"

namespace lamplighter {
namespace {

class None : public DraftMethod {
 public:
  explicit None(const c10::Device& device) : root_(topology(preset_tree("chain-0"), device)) {}

  bool drafts() const override { return false; }
  TreeShape shape() const override { return {}; }
  Draft draft(const RunState& run) override { return {root_, run.counters.root.unsqueeze(1)}; }

 private:
  Topology root_;
};

}  // namespace

std::unique_ptr<DraftMethod> make_none(const Method& /*method*/, const Models& models) {
  return std::make_unique<None>(models.target->placement().device);
}

}  // namespace lamplighter

#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "draft/adapt/adaptation.h"
#include "draft/method.h"
#include "draft/windows/window_steps.h"

namespace lamplighter {

// Speculative Jacobi decoding (Teng et al. 2024, arXiv 2410.01699): a window of drafts behind the last token
// goes through the target in every cycle, and each of its rows gives a new distribution of the next position.
// What is not committed stays in the window as a draft that its own row was sampled from, so the rule
// verifies it losslessly. Needs no drafter. The method's tree is the window: a chain, or a multi-candidate
// window, whose first positions have several candidates under every node (SJD-PAC,
// github.com/KangJialiang/SJD-PAC, with its distributions corrected; sjd_pac_official.h is the official
// variant). A position keeps one row, and of its candidates only the first outlives the cycle. With
// WindowOptions::front a drafter fills the first positions in every cycle; a draft comes from the row beside
// it, whoever filled both.
class Jacobi : public DraftMethod {
 public:
  Jacobi(const Method& method, const Models& models);

  TreeShape shape() const override { return shape_; }
  bool replayable() const override { return !adaptation_; }
  void allocate(const RunShape& shape, std::int64_t slots) override;
  void begin(const Prompts& prompts, const Prefilled& prefilled, const RunState& run) override;
  Draft draft(const RunState& run) override;
  void update(const Draft& draft, const Scores& scores, const Verified& verified,
              const RunState& run) override;
  void begun(const RunState& run) override;
  bool finishes_cycles() const override { return steps_.has_value(); }
  ops::WindowRows finish_cycle(const at::Tensor& logits, const Draft& draft, const Scores& scores,
                               RunState& run) override;
  std::vector<PerImage> per_image() override;
  void advance_for_benchmark(std::int64_t slots) override;

 protected:
  // The positions with more than one candidate, the first ones, and how many candidates they have.
  struct MultiCandidate {
    std::int64_t positions = 0, count = 1;
  };

  // `row_behind`: the children of the last position have a row of distributions, too.
  Jacobi(const Method& method, const Models& models, bool row_behind);

  // What outlives a cycle, [I, L, ..] each, and its values after one.
  virtual std::vector<at::Tensor*> window() { return {&window_tokens_, &window_probs_}; }
  virtual std::vector<at::Tensor> renewed(const Draft& draft, const Verified& verified,
                                          const RunState& run) const;
  // Forgets all drafts.
  virtual void clear() { window_tokens_.fill_(-1); }
  // int64 [I, positions, count - 1]. The other candidates of a position are sampled from its row without the
  // first, whose distribution that row is; so together they are sampled without replacement.
  virtual at::Tensor other_candidates(const RunState& run) const;

  // int64 [I, L + 1]: by depth, the nodes whose rows say what follows the end of the accepted path.
  at::Tensor stale_nodes(const Verified& verified) const;

  TreeShape shape_;
  MultiCandidate multi_;
  std::int64_t vocabulary_, codes_;  // V of the head, and the ids of it that are codes
  at::Tensor offsets_;               // int64 [L]: 0, 1, ..
  // The window: codes int64 [I, L], -1: no draft, and what they were sampled from, fp32 [I, L, V].
  at::Tensor window_tokens_, window_probs_;

 private:
  // The window as a chain of L + 1 nodes, and what the target says of each.
  struct Chain {
    ops::Distributions target;  // [I, L + 1, V]
    at::Tensor tokens, parents, draft_rows;
  };

  void index_nodes(const Tree& tree, bool row_behind);
  void take_front(const Draft& front);
  at::Tensor drafted(const RunState& run) const;
  at::Tensor first_tokens(const Draft& draft) const;
  Chain first_candidates(const Draft& draft, const Verified& verified) const;
  void keep_unscored(const Draft& draft, const Verified& verified, std::vector<at::Tensor>& next);

  const Target& target_;
  WindowOptions options_;
  bool sampled_;
  bool in_steps_;                     // where whole cycles are asked for
  std::optional<WindowSteps> steps_;  // with it, nothing else outlives a cycle
  Tree front_tree_;
  std::unique_ptr<DraftMethod> front_;    // null: no drafter
  std::optional<Adaptation> adaptation_;  // absent: every cycle verifies the whole window
  Topology topology_;
  // int64 [N, L + 1], [L + 1], and [N - 1] each.
  at::Tensor stale_, chain_, position_, candidate_;
  std::int64_t columns_ = 0;  // codes of an image row
  at::Tensor likeliest_;      // int64 [I], the target's most probable token where the last token stands
};

std::unique_ptr<DraftMethod> make_jacobi(const Method& method, const Models& models);

}  // namespace lamplighter

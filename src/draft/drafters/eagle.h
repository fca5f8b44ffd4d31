#pragma once

#include <vector>

#include "draft/drafters/eagle_layer.h"
#include "draft/method.h"

// Drafts with an EAGLE-style layer (Li et al. 2024, section 3), or with a whole small target (Leviathan et
// al. 2023, section 2; Chen et al. 2023).
namespace lamplighter {

// The common part of static and dynamic trees. Sd = sequences of the drafter: as many as the target has, or
// one per image with conditional drafting. A = most tokens that a cycle commits.
class Eagle : public DraftMethod {
 public:
  Eagle(const Method& method, const Models& models);

  void allocate(const RunShape& shape, std::int64_t rows) override;
  void begin(const Prompts& prompts, const Prefilled& prefilled, const RunState& run) override;
  // Runs the drafter up to the root and grows a tree below it.
  Draft draft(const RunState& run) override;
  void update(const Draft& draft, const Scores& scores, const Verified& verified,
              const RunState& run) override;
  std::vector<PerImage> per_image() override;
  void advance_for_benchmark(std::int64_t slots) override;

  ops::NewTokens fresh;  // new tokens since the drafter's last pass
  at::Tensor cache;      // [layers, 2, Sd, kv_heads, slots, head_dim]
  at::Tensor lengths;    // int64 [Sd], its committed positions

 protected:
  // The new tokens: ids and positions int64 [Sd, A], features [Sd, A, F].
  struct NewTokensPart {
    at::Tensor ids, features, positions;
  };
  // Runs them behind the committed positions: [Sd, A, H]. Only the last valid row is read.
  virtual at::Tensor run_new_tokens(const NewTokensPart& part);
  // Grows a tree below the root, whose hidden state is `hidden` [Sd, 1, H].
  virtual Draft grow(const RunState& run, at::Tensor hidden) = 0;
  // Cache slots behind the committed ones that growing a tree writes.
  virtual std::int64_t grown_rows() const = 0;

  // W nodes of a tree that the drafter runs in one pass.
  struct Level {
    at::Tensor codes;          // int64 [I, W]
    at::Tensor features;       // [Sd, W, H], hidden states of their parents
    at::Tensor parent_depths;  // int64 [1, 1]
    at::Tensor mask;           // as for `attend`
  };
  // Their hidden states [Sd, W, H]. position int64 [Sd] of the root; lengths int64 [2, Sd] as for `attend`.
  at::Tensor run_level(const RunState& run, const Level& level, const at::Tensor& position,
                       const at::Tensor& level_lengths);
  // Selects the drafter's sequences from a tensor of the target's.
  at::Tensor drafted_half(const at::Tensor& per_sequence, const RunState& run) const;

  const std::unique_ptr<EagleLayer> layer_;
  const Method& method_;

 private:
  // Runs the new tokens: [Sd, 1, H], the hidden state of the last one.
  at::Tensor extend(const RunState& run);

  const DraftModel& network_;
  std::int64_t feature_width_;  // F
};

// Static trees, or the dynamic trees of EAGLE-2. A tree of the root alone drafts nothing.
std::unique_ptr<DraftMethod> make_eagle(const Method& method, const Models& models);

// `tree` may be a part of the method's and outlives the draft method.
std::unique_ptr<DraftMethod> make_eagle_static(const Method& method, const Models& models, const Tree& tree);
std::unique_ptr<DraftMethod> make_eagle_dynamic(const Method& method, const Models& models);

}  // namespace lamplighter

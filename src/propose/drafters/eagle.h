#pragma once

#include <vector>

#include "propose/method.h"

// Drafting with an EAGLE-style single layer (Li et al. 2024, section 3): it reads the target's features of a
// token and the embedding of the token after it, and says what that token's features would be. Or with a
// whole small target (Leviathan et al. 2023, section 2; Chen et al. 2023), which reads tokens alone.
namespace lamplighter {

// What static and dynamic trees share. Sd = sequences of the drafter: those of the target, or one per image
// with conditional drafting. A = most rows that a cycle keeps.
class Eagle : public Proposer {
 public:
  Eagle(const Method& method, const Models& models);

  void allocate(const RunShape& shape, std::int64_t rows) override;
  // Runs the drafter over all prompt rows but the last of each sequence, after their padding if it reads
  // that; a model over all of them.
  void begin(const Prompts& prompts, const Prefilled& prefilled, const RunState& run) override;
  // Brings the drafter up to the root and grows a tree below it.
  Draft propose(const RunState& run) override;
  void learn(const Draft& draft, const Scores& scores, const Judged& judged, const KeptRows& kept,
             const RunState& run) override;
  std::vector<PerImage> per_image() override;
  void skip(std::int64_t rows) override;

  ops::FreshRows fresh;  // committed since the drafter's last pass
  at::Tensor cache;      // [layers, 2, Sd, kv_heads, slots, head_dim]
  at::Tensor lengths;    // int64 [Sd], committed rows of it

 protected:
  // What is fresh: ids and positions int64 [Sd, A], features [Sd, A, F].
  struct FreshPart {
    at::Tensor ids, features, positions;
  };
  // Runs it behind the committed rows: [Sd, A, H]. Only what follows the last valid row is asked for.
  virtual at::Tensor run_fresh(const FreshPart& part);
  // A tree below the root, whose own row of the drafter is `hidden` [Sd, 1, H].
  virtual Draft grow(const RunState& run, at::Tensor hidden) = 0;
  // Rows that growing a tree writes behind the committed ones of the cache.
  virtual std::int64_t grown_rows() const = 0;

  // Nodes of a tree that the drafter is to run side by side, W of them.
  struct Level {
    at::Tensor codes;          // int64 [I, W]
    at::Tensor features;       // [Sd, W, H], of their parents
    at::Tensor parent_depths;  // int64 [1, 1]
    at::Tensor mask;           // as for `attend`
  };
  // Their hidden rows [Sd, W, H]. position int64 [Sd], of the root; lengths int64 [2, Sd] as for `attend`.
  at::Tensor run_level(const RunState& run, const Level& level, const at::Tensor& position,
                       const at::Tensor& level_lengths);
  // The drafter's sequences of what the target has per sequence.
  at::Tensor drafted_half(const at::Tensor& per_sequence, const RunState& run) const;

  const Drafter& drafter_;
  const Method& method_;

 private:
  void read_prompts(const Prompts& prompts, const Prefilled& prefilled, const RunState& run);
  // Runs the fresh rows: [Sd, 1, H], what follows the last of them.
  at::Tensor extend(const RunState& run);

  std::int64_t feature_width_;  // F; 0 of models
};

// `tree`: what grows below the root; that of the method, or a part of what is judged. It outlives the
// proposer.
std::unique_ptr<Proposer> make_eagle_static(const Method& method, const Models& models, const Tree& tree);
std::unique_ptr<Proposer> make_eagle_dynamic(const Method& method, const Models& models);

}  // namespace lamplighter

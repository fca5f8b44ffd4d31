#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "draft/draft.h"
#include "draft/models.h"
#include "draft/run_state.h"
#include "draft/verify.h"

namespace lamplighter {

// A tensor whose entries belong to one image each: one per image, or one per sequence.
struct PerImage {
  at::Tensor* tensor = nullptr;
  std::int64_t images = 0;  // the dimension along which they lie
  // The dimension of a cache's slots: runs have different numbers of them, and only committed ones matter.
  // -1: the tensor is no cache.
  std::int64_t cache_slots = -1;
};

// A decoding method: where drafted tokens come from. It belongs to one run and owns all state of its method;
// the loop knows nothing else of methods. Every image is drafted for alone: its drafts depend on its own
// past, never on the images beside it.
class DraftMethod {
 public:
  virtual ~DraftMethod() = default;

  // Whether a cycle can be captured as a CUDA graph: with fixed shapes, all cycles do the same work and the
  // host never waits for the device.
  virtual bool replayable() const { return true; }

  // Whether it drafts at all. Otherwise its draft is the last token alone and has no state: neither `verify`
  // nor `update` is called.
  virtual bool drafts() const { return true; }

  // Makes the state of a run, before anything below is called. `slots`: cache slots for prompt and image,
  // besides the slots of a draft.
  virtual void allocate(const RunShape& /*shape*/, std::int64_t /*slots*/) {}

  virtual TreeShape shape() const = 0;

  // The positions of an image in the order in which its codes are committed, int64 [1, total]; or a row for
  // every image [I, >= total], valid up to its committed codes. Undefined: raster order.
  virtual at::Tensor order() const { return {}; }

  // Called after the target's pass over the prompts. What it says of their last rows is left to `update`,
  // which is called for the first token of every image.
  virtual void begin(const Prompts& /*prompts*/, const Prefilled& /*prefilled*/, const RunState& /*run*/) {}

  // Drafts behind the last token of every image.
  virtual Draft draft(const RunState& run) = 0;

  // Verifies a draft; `target`: the distributions [I, N, V] of what follows each node.
  virtual Verified verify(const RunState& run, const Draft& draft, const Scores& scores,
                          ops::Distributions target, const ops::VerifyOptions& rule) const {
    const std::int64_t depth = draft.tokens.size(1) > 1 ? shape().depth : 0;
    return verify_tree(run, draft, scores, std::move(target), depth, rule);
  }

  // Updates the state by a verified draft, before `run` is advanced. Also called with the first token of
  // every image, a tree of one node.
  virtual void update(const Draft& /*draft*/, const Scores& /*scores*/, const Verified& /*verified*/,
                      const RunState& /*run*/) {}

  // Called when the first token of every image is committed.
  virtual void begun(const RunState& /*run*/) {}

  // Whether finish_cycle() takes the place of `verify`, `update` and the commit, but for the first token.
  virtual bool finishes_cycles() const { return false; }
  // Returns the rows of the pass whose cache slots stay. `logits`: [S, N, V], of what follows each node.
  virtual ops::WindowRows finish_cycle(const at::Tensor& /*logits*/, const Draft& /*draft*/,
                                       const Scores& /*scores*/, RunState& /*run*/) {
    return {};
  }

  // State that belongs to images. It is copied when an image enters a batch slot or changes it.
  virtual std::vector<PerImage> per_image() { return {}; }

  // Benchmark only: advances caches by `slots` zero slots.
  virtual void advance_for_benchmark(std::int64_t /*slots*/) {}
};

struct Method;
using MakeDraftMethod = std::unique_ptr<DraftMethod> (*)(const Method& method, const Models& models);
// Makes a draft method for a tree that may be a part of the verified one. The tree outlives the draft method.
using MakeTreeDraftMethod = std::unique_ptr<DraftMethod> (*)(const Method& method, const Models& models,
                                                             const Tree& tree);

}  // namespace lamplighter

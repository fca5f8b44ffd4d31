#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <vector>

#include "draft/adapt/sizes.h"
#include "draft/method.h"

namespace lamplighter {

// The sizes of a run's drafts, by a rule that learns from what was accepted in each image. Draft methods that
// have one cannot be replayed: the host decides.
class Adaptation {
 public:
  using MakeRule = std::unique_ptr<SizeRule> (*)(const Neighbourhood&, const DraftSize&, const DraftSize&);
  Adaptation(MakeRule make, const DraftSize& least, const DraftSize& most)
      : make_(make), least_(least), most_(most) {}

  void allocate(const RunShape& shape);
  // Of each image's next draft.
  std::vector<DraftSize> next(const RunState& run) const;
  // Before `run` is advanced.
  void learn(const Draft& draft, const Verified& verified, const RunState& run);
  PerImage per_image() { return {&notes_}; }

 private:
  PositionNote* notes_of(std::int64_t image) const;

  MakeRule make_;
  DraftSize least_, most_;
  std::unique_ptr<SizeRule> rule_;
  at::Tensor notes_;  // int64 [I, positions, 2] on the CPU
};

// The lengths of a window that is a chain, by expectation; absent: the method does not adapt.
std::optional<Adaptation> adapted_window(const Method& method);

// What a batch drafts: the largest size of its images, and for each image what it has of that, int64 [I, 1].
struct BatchSizes {
  DraftSize largest;
  at::Tensor depths, widths;
};
BatchSizes batch_sizes(const std::vector<DraftSize>& sizes, const c10::Device& device);

// Leaves of a chain what the batch drafts, and of each image's part what it has of that.
void shorten(const BatchSizes& sizes, Draft& chain);

}  // namespace lamplighter

#pragma once

#include <memory>
#include <vector>

#include "propose/seam.h"

namespace lamplighter {

// A tensor with entries that belong to one image each: one, or one per sequence.
struct PerImage {
  at::Tensor* tensor = nullptr;
  std::int64_t images = 0;  // the dimension along which they lie
  // The dimension along which a cache has its rows: runs have different numbers of them, and only committed
  // ones matter. -1: the tensor is no cache.
  std::int64_t cache_rows = -1;
};

// Where drafted tokens come from. A proposer belongs to one run and owns all state of its method; the loop
// knows nothing else of methods. Every image is drafted for alone: what is proposed for it depends on its own
// past, never on the images beside it.
class Proposer {
 public:
  virtual ~Proposer() = default;

  // Whether `propose` and `learn` do the same work in every cycle of a run with fixed shapes, without a word
  // from the device to the host: then a cycle can be captured as a CUDA graph.
  virtual bool replayable() const { return true; }

  // Makes the state of a run, without which nothing below may be called. `rows`: rows of prompt and picture
  // that caches have to hold besides what a tree adds to them.
  virtual void allocate(const RunShape& /*shape*/, std::int64_t /*rows*/) {}

  virtual TreeShape shape() const = 0;

  // The places of a picture in the order in which its codes are committed, int64 [1, total]; or those of
  // every image [I, >= total], known as far as its codes are. Undefined: raster order.
  virtual at::Tensor order() const { return {}; }

  // The target has been run over the prompts. Their last rows are not its business: they are the roots of the
  // first trees, and `learn` tells of them.
  virtual void begin(const Prompts& /*prompts*/, const Prefilled& /*prefilled*/, const RunState& /*run*/) {}

  // A tree below the root of every image.
  virtual Draft propose(const RunState& run) = 0;

  // What was kept of a tree, before `run` is advanced by it. Also called for the roots alone that prompts end
  // with.
  virtual void learn(const Draft& /*draft*/, const Scores& /*scores*/, const Judged& /*judged*/,
                     const KeptRows& /*kept*/, const RunState& /*run*/) {}

  // State that belongs to images: slots of a run take it over from images that begin, and keep it while they
  // change places.
  virtual std::vector<PerImage> per_image() { return {}; }

  // As if so many rows of the picture had been learnt, all of them zeros: where a measurement begins.
  virtual void skip(std::int64_t /*rows*/) {}
};

struct Method;
using MakeProposer = std::unique_ptr<Proposer> (*)(const Method& method, const Models& models);

// Drafts nothing: autoregression, a tree of the root alone.
std::unique_ptr<Proposer> make_none(const Method& method, const Models& models);
// EAGLE's drafter (Li et al. 2024), or a small target in its place (Leviathan et al. 2023): static trees, or
// those of EAGLE-2. Nothing for a tree of the root alone.
std::unique_ptr<Proposer> make_eagle(const Method& method, const Models& models);

}  // namespace lamplighter

#pragma once

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <optional>

#include "draft/drafters/eagle.h"
#include "tests/decode/toy.h"

namespace lamplighter::test {

// The state of EAGLE's drafter in a run that drafts with it.
inline Eagle& eagle(const DecodeState& state) {
  return dynamic_cast<Eagle&>(*state.draft_method);
}

// The expected caches: one causal pass over the prompt and the committed tokens of each image fills them. The
// target's rows are compared with its committed ones, the drafter's likewise; it saw the true features of
// every row.
class FreshCaches {
 public:
  FreshCaches(const Toy& toy, const Method& method, const Prompts& prompts)
      : toy_(toy), method_(method), prompts_(prompts) {}

  bool target_matches(const DecodeState& state) {
    bool same = true;
    for (std::int64_t image = 0; image < state.run.images(); ++image) {
      const Run run = fresh_target(state, image);
      same = same &&
             equal_rows(state.run.cache.narrow(2, image * run.sequences, run.sequences), run.cache, run.rows);
    }
    return same;
  }

  bool drafter_matches(const DecodeState& state) {
    bool same = true;
    for (std::int64_t image = 0; image < state.run.images(); ++image)
      same = same && drafter_matches(state, image);
    return same;
  }

 private:
  struct Run {
    at::Tensor cache, features, ids;  // of the image, the root included
    std::int64_t sequences = 0, valid = 0, rows = 0;
  };

  static bool equal_rows(const at::Tensor& a, const at::Tensor& b, std::int64_t rows) {
    return at::equal(a.narrow(4, 0, rows), b.narrow(4, 0, rows));
  }

  at::Tensor positions(const Run& run, std::int64_t rows) const {
    const std::int64_t length = toy_.target.manifest().prompt->length;
    return at::arange(length - run.valid, length - run.valid + rows, at::kLong)
        .expand({run.sequences, rows})
        .contiguous();
  }

  // The root is committed, but not yet in the cache.
  Run fresh_target(const DecodeState& state, std::int64_t image) const {
    Run run;
    run.sequences = state.run.guided ? 2 : 1;
    run.valid = prompts_.valid[image * run.sequences].item<std::int64_t>();
    const auto steps = state.run.counters.steps[image].item<std::int64_t>();
    const at::Tensor codes = state.run.counters.codes.narrow(0, image, 1).narrow(1, 0, steps);
    const at::Tensor fed = fed_ids(codes.narrow(1, 0, steps - 1), toy_.grid());
    run.rows = run.valid + fed.size(1);
    run.ids = at::cat({fed, codes.narrow(1, steps - 1, 1)}, 1);
    const at::Tensor prompt =
        prompts_.rows.narrow(0, image * run.sequences, run.sequences).narrow(1, 0, run.valid);
    const at::Tensor ids = fed.expand({run.sequences, -1}).contiguous();
    run.cache = toy_.target.make_cache(run.sequences, run.rows);
    run.features = toy_.target
                       .forward(at::cat({prompt, toy_.target.embed(ids)}, 1), positions(run, run.rows),
                                at::empty({0}, at::kLong), at::zeros({run.sequences}, at::kLong), run.cache)
                       .features;
    return run;
  }

  bool drafter_matches(const DecodeState& state, std::int64_t image) const {
    Run run = fresh_target(state, image);
    const std::int64_t sequences = run.sequences;
    if (method_.conditional && state.run.guided) {
      run.sequences = 1;
      run.features = run.features.narrow(0, 0, 1);
    }
    const Eagle& drafter = eagle(state);
    if (is_small_target(toy_.drafter))
      return model_matches(drafter, run, image * sequences, image * run.sequences);
    const auto length = drafter.lengths[image * run.sequences].item<std::int64_t>();
    const auto fresh = drafter.fresh.count[image * run.sequences].item<std::int64_t>();
    if (length + fresh != run.rows) return false;
    // Row r holds the embedding of what comes at r + 1: on prompt rows the prompt's ids, or all the same.
    const std::optional<std::int64_t> stand_in = toy_.drafter.entry().prompt_id;
    const at::Tensor prompt_ids =
        stand_in ? at::full({run.sequences, run.valid - 1}, *stand_in, at::kLong)
                 : prompts_.ids.narrow(0, image * sequences, run.sequences).narrow(1, 1, run.valid - 1);
    const at::Tensor ids = at::cat({prompt_ids, run.ids.expand({run.sequences, -1})}, 1).narrow(1, 0, length);
    if (length == 0) return true;
    const at::Tensor cache = toy_.drafter.make_cache(run.sequences, length);
    const EagleLayer layer(toy_.drafter);
    layer.forward(layer.embed(ids.contiguous()), run.features.narrow(1, 0, length).contiguous(),
                  positions(run, length), at::empty({0}, at::kLong), at::zeros({run.sequences}, at::kLong),
                  cache);
    return equal_rows(drafter.cache.narrow(2, image * run.sequences, run.sequences), cache, length);
  }

  // first, draft_first: the image's first sequence in the target and in the drafter.
  bool model_matches(const Eagle& drafter, const Run& run, std::int64_t first,
                     std::int64_t draft_first) const {
    const auto length = drafter.lengths[draft_first].item<std::int64_t>();
    if (length + drafter.fresh.count[draft_first].item<std::int64_t>() != run.rows + 1) return false;
    const auto own = [&](const at::Tensor& rows) { return rows.narrow(0, first, run.sequences); };
    const SmallTarget model(toy_.drafter);
    const at::Tensor prompt =
        prompts_.ids.defined() ? model.embed(own(prompts_.ids).contiguous()) : own(prompts_.drafter_rows);
    const at::Tensor fed = model.embed(run.ids.expand({run.sequences, -1}).contiguous());
    const at::Tensor rows = at::cat({prompt.narrow(1, 0, run.valid), fed}, 1).narrow(1, 0, length);
    at::Tensor cache = toy_.drafter.make_cache(run.sequences, length);
    model.run_prompt(rows.contiguous(), positions(run, length), cache);
    return equal_rows(drafter.cache.narrow(2, draft_first, run.sequences), cache, length);
  }

  const Toy& toy_;
  const Method& method_;
  const Prompts& prompts_;
};

}  // namespace lamplighter::test

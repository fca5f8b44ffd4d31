#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/core/InferenceMode.h>

#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "bundle/synthetic/synthetic.h"
#include "decode/cycle.h"
#include "decode/decode.h"
#include "decode/prompts.h"
#include "propose/drafters/eagle.h"
#include "propose/drafters/self.h"
#include "propose/windows/jacobi.h"
#include "propose/windows/open_windows.h"
#include "propose/windows/zipar.h"
#include "tests/kernels/common/operators.h"

// Small models with random weights, and the decode loop on them.
namespace lamplighter::test {

class Toy {
 public:
  explicit Toy(const SyntheticShape& shape, c10::ScalarType dtype = at::kFloat,
               const c10::Device& device = c10::kCPU)
      : bundle_(make_synthetic(shape, {device, dtype})),
        target(bundle_.manifest, bundle_.target),
        drafter(drafter_entry(), *bundle_.drafter) {}
  // The target of another shape drafts: that of the same one is the target itself.
  Toy(const SyntheticShape& shape, const SyntheticShape& model, c10::ScalarType dtype = at::kFloat)
      : bundle_(make_synthetic(shape, {c10::kCPU, dtype})),
        target(bundle_.manifest, bundle_.target),
        drafter(model_entry(model), make_synthetic(model, {c10::kCPU, dtype}).target) {}

  Models models() const { return {&target, &drafter}; }
  Grid grid() const { return target.manifest().grids.front(); }

  // The prompt of the picture with this number; prompts differ, and so do their lengths unless `full`.
  Condition condition(std::int64_t number, bool full = false) const {
    const PromptEntry& prompt = *target.manifest().prompt;
    std::mt19937 rng(static_cast<unsigned>(number) + 1);
    const std::int64_t valid = full ? prompt.length : 1 + number % prompt.length;
    const at::Tensor features = random_tensor(rng, {1, valid, prompt.features}, at::kFloat);
    const std::int64_t padding = prompt.length - valid;
    const c10::Device device = target.placement().device;
    return {at::constant_pad_nd(features, {0, 0, 0, padding}).to(device),
            at::constant_pad_nd(at::ones({1, valid}, at::kLong), {0, padding}).to(device)};
  }

  Prompts prompts(const std::vector<std::int64_t>& numbers, bool guided) const {
    std::vector<Condition> conditions;
    for (const std::int64_t number : numbers) conditions.push_back(condition(number));
    Prompts prompts = embed_prompts(models(), conditions, guided);
    if (grid().row_end.empty()) return prompts;
    const std::int64_t vocabulary = target.manifest().tokens.vocabulary, sequences = guided ? 2 : 1;
    const std::int64_t rows = prompts.rows.size(1);
    prompts.ids =
        integers({prompts.rows.size(0), rows}, [&](std::int64_t i) {
          return (7 * numbers[static_cast<std::size_t>(i / rows / sequences)] + 3 * i % (sequences * rows)) %
                 vocabulary;
        }).to(target.placement().device);
    return prompts;
  }

 private:
  // Where rows end with a token, prompts are tokens, too: the drafter sees their ids.
  DrafterEntry drafter_entry() const {
    DrafterEntry entry = bundle_.manifest.drafters.at("synthetic");
    if (!bundle_.manifest.grids.front().row_end.empty()) entry.prompt_id.reset();
    return entry;
  }

  static DrafterEntry model_entry(const SyntheticShape& shape) {
    DrafterEntry entry;
    entry.kind = "model";
    entry.layers = shape.layers;
    entry.kv_heads = shape.kv_heads;
    entry.head_dim = shape.head_dim;
    return entry;
  }

  SyntheticBundle bundle_;

 public:
  const Target target;
  const Drafter drafter;
};

// A smaller target of the same prompts and codes.
inline SyntheticShape small_model(const SyntheticShape& target) {
  SyntheticShape shape = target;
  shape.hidden = 24;
  shape.layers = 1;
  shape.heads = shape.kv_heads = 3;
  shape.seed = 5;
  return shape;
}

// The toy whose drafter is a layer over the target's features, or such a model.
inline Toy make_toy(const SyntheticShape& shape, bool model, c10::ScalarType dtype = at::kFloat) {
  return model ? Toy(shape, small_model(shape), dtype) : Toy(shape, dtype);
}

// Codes int64 [I, n] of the first n places of a picture as the ids that are fed for them: a row end follows
// the last code of every row but the picture's last.
inline at::Tensor fed_ids(const at::Tensor& codes, const Grid& grid) {
  if (grid.row_end.empty()) return codes;
  std::vector<at::Tensor> columns;
  for (std::int64_t i = 0; i < codes.size(1); ++i) {
    columns.push_back(codes.narrow(1, i, 1));
    if ((i + 1) % grid.columns == 0 && i + 1 < grid.tokens())
      columns.push_back(at::full_like(columns.back(), grid.row_end.front()));
  }
  return columns.empty() ? codes : at::cat(columns, 1);
}

// Static trees: sampled children unless `top`.
inline Method static_method(Tree tree, const std::string& rule = "exact", bool top = false) {
  Method method;
  method.proposer = &make_eagle;
  method.tree = std::move(tree);
  method.judge.rule = rule_from(rule);
  method.judge.sampled = !top;
  return method;
}

// A chain that ends where the drafter is not sure of it.
inline Method ending_method(const std::string& chain, float confidence) {
  Method method = static_method(preset_tree(chain));
  method.confidence = confidence;
  return method;
}

// Speculative Jacobi decoding with a window of this chain.
inline Method window_method(const std::string& chain, WindowFill fill = WindowFill::uniform,
                            bool keep = true) {
  Method method = static_method(preset_tree(chain));
  method.proposer = &make_jacobi;
  method.window = {keep, fill};
  return method;
}

// Such a window whose first places the drafter fills.
inline Method front_method(const std::string& chain, std::int64_t front) {
  Method method = window_method(chain);
  method.window.front = front;
  return method;
}

// The first layers of the target draft, and see the prompt and so many rows of the picture; 0: all.
inline Method self_method(Tree tree, std::int64_t layers, std::int64_t window = 0) {
  Method method = static_method(std::move(tree));
  method.proposer = &make_self;
  method.self = {layers, window};
  return method;
}

// Rows side by side, each `ahead` codes behind the one above it.
inline Method zipar_method(std::int64_t ahead, bool blank = false) {
  Method method;
  method.proposer = &make_zipar;
  method.tree.reset();
  method.rows = {ahead, blank, 0};
  return method;
}

// The same with a window in every row, whose drafts see those of other rows or not.
inline Method windows_method(std::int64_t ahead, std::int64_t slots, bool across = false,
                             WindowFill fill = WindowFill::repeat, bool keep = true) {
  Method method;
  method.proposer = across ? &make_row_parallel : &make_zipar_windows;
  method.tree.reset();
  method.window = {keep, fill};
  method.rows = {ahead, false, slots};
  return method;
}

inline Method dynamic_method(std::int64_t passes, std::int64_t width, std::int64_t nodes) {
  Method method;
  method.proposer = &make_eagle;
  method.tree.reset();
  method.dynamic = {passes, width, nodes};
  method.judge.sampled = false;
  return method;
}

// A relaxed rule on a static tree of sampled children; neighbours int32 [codes, K].
inline Method relaxed_method(Tree tree, const std::string& rule, float bound, std::int64_t k,
                             const at::Tensor& neighbours) {
  Method method = static_method(std::move(tree), rule);
  method.judge.bounds = at::tensor({bound});
  method.judge.k = k;
  method.judge.neighbours = neighbours;
  return method;
}

// Hands out the pictures 0 .. count - 1 of a run with slots; `request` says how each is drawn.
struct Queue {
  PendingImages operator()(std::int64_t most) {
    PendingImages images;
    std::vector<std::int64_t> numbers;
    for (; begun < count && static_cast<std::int64_t>(numbers.size()) < most; ++begun) {
      numbers.push_back(begun);
      images.requests.push_back(request(begun));
    }
    if (!numbers.empty()) images.prompts = toy.prompts(numbers, true);
    return images;
  }

  const Toy& toy;
  std::int64_t count;
  std::function<DecodeRequest(std::int64_t number)> request;
  std::int64_t begun = 0;
};

// The parts of the loop one by one, for images that begin together; `inspect` is called after every commit,
// that of the prefill included.
using Inspect = std::function<void(DecodeState& state, std::int64_t cycle)>;
inline at::Tensor decode_by_parts(const Models& models, const Method& method, const Prompts& prompts,
                                  const std::vector<DecodeRequest>& requests, const Grid& grid,
                                  const Inspect& inspect) {
  const c10::InferenceMode inference;
  DecodeState state = make_state(models, method, prompts, requests, grid);
  Draft tree = root_alone(state);
  Scores scores = prefill(models, prompts, state);
  for (std::int64_t cycle = 0;; ++cycle) {
    commit(state, tree, scores, judge(models, method, state, tree, scores));
    inspect(state, cycle);
    if (state.steps.min().item<std::int64_t>() == state.total)
      return state.codes.narrow(1, 0, state.total).contiguous();
    tree = draft(state);
    scores = score(models, state, tree);
  }
}

// Whether pictures take different numbers of cycles.
inline bool drafts(const Method& method) {
  if (method.proposer == &make_zipar) return false;
  return !method.tree || method.tree->drafted() > 0;
}

// The state of EAGLE's drafter in a run that drafts with it.
inline Eagle& eagle(const DecodeState& state) {
  return dynamic_cast<Eagle&>(*state.proposer);
}

// Two children of the root, three of theirs, and one below.
inline Tree bushy_tree() {
  return make_tree({{0}, {1}, {0, 0}, {0, 1}, {1, 0}, {0, 0, 0}});
}

// What every row of the caches must hold: those of one causal pass over the prompt and the committed tokens,
// image by image. The target's rows are compared with its committed ones, the drafter's likewise; it saw the
// true features of every row.
class FreshCaches {
 public:
  FreshCaches(const Toy& toy, const Method& method, const Prompts& prompts)
      : toy_(toy), method_(method), prompts_(prompts) {}

  bool target_matches(const DecodeState& state) {
    bool same = true;
    for (std::int64_t image = 0; image < state.images(); ++image) {
      const Run run = fresh_target(state, image);
      same = same &&
             equal_rows(state.cache.narrow(2, image * run.sequences, run.sequences), run.cache, run.rows);
    }
    return same;
  }

  bool drafter_matches(const DecodeState& state) {
    bool same = true;
    for (std::int64_t image = 0; image < state.images(); ++image)
      same = same && drafter_matches(state, image);
    return same;
  }

 private:
  struct Run {
    at::Tensor cache, features, ids;  // of the picture, the root included
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
    run.sequences = state.guided ? 2 : 1;
    run.valid = prompts_.valid[image * run.sequences].item<std::int64_t>();
    const auto steps = state.steps[image].item<std::int64_t>();
    const at::Tensor codes = state.codes.narrow(0, image, 1).narrow(1, 0, steps);
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
    if (method_.conditional && state.guided) {
      run.sequences = 1;
      run.features = run.features.narrow(0, 0, 1);
    }
    const Eagle& drafter = eagle(state);
    if (toy_.drafter.entry().is_model())
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
    toy_.drafter.forward(toy_.drafter.embed(ids.contiguous()), run.features.narrow(1, 0, length).contiguous(),
                         positions(run, length), at::empty({0}, at::kLong),
                         at::zeros({run.sequences}, at::kLong), cache);
    return equal_rows(drafter.cache.narrow(2, image * run.sequences, run.sequences), cache, length);
  }

  // first: of the image among the sequences of the target; draft_first: among those of the drafter.
  bool model_matches(const Eagle& drafter, const Run& run, std::int64_t first,
                     std::int64_t draft_first) const {
    const auto length = drafter.lengths[draft_first].item<std::int64_t>();
    if (length + drafter.fresh.count[draft_first].item<std::int64_t>() != run.rows + 1) return false;
    const auto own = [&](const at::Tensor& rows) { return rows.narrow(0, first, run.sequences); };
    const at::Tensor prompt = prompts_.ids.defined() ? toy_.drafter.embed(own(prompts_.ids).contiguous())
                                                     : own(prompts_.drafter_rows);
    const at::Tensor fed = toy_.drafter.embed(run.ids.expand({run.sequences, -1}).contiguous());
    const at::Tensor rows = at::cat({prompt.narrow(1, 0, run.valid), fed}, 1).narrow(1, 0, length);
    at::Tensor cache = toy_.drafter.make_cache(run.sequences, length);
    toy_.drafter.read_prompt(rows.contiguous(), positions(run, length), cache);
    return equal_rows(drafter.cache.narrow(2, draft_first, run.sequences), cache, length);
  }

  const Toy& toy_;
  const Method& method_;
  const Prompts& prompts_;
};

}  // namespace lamplighter::test

#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/ones.h>
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
#include "tests/kernels/common/operators.h"

// Small models with random weights, and the decode loop on them.
namespace lamplighter::test {

inline const c10::Device kCuda(c10::kCUDA, 0);

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

  // The prompt of the image with this number; prompts differ, and so do their lengths unless `full`.
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
  DraftModelEntry drafter_entry() const {
    DraftModelEntry entry = bundle_.manifest.drafters.at("synthetic");
    if (!bundle_.manifest.grids.front().row_end.empty()) entry.prompt_id.reset();
    return entry;
  }

  static DraftModelEntry model_entry(const SyntheticShape& shape) {
    DraftModelEntry entry;
    entry.kind = "model";
    entry.layers = shape.layers;
    entry.kv_heads = shape.kv_heads;
    entry.head_dim = shape.head_dim;
    return entry;
  }

  SyntheticBundle bundle_;

 public:
  const Target target;
  const DraftModel drafter;
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

// Images of 4 x 5 codes, whose rows end with a token or not.
inline SyntheticShape small_shape(bool row_ends = false) {
  SyntheticShape shape;
  shape.row_ends = row_ends;
  shape.vocabulary = 6;
  shape.rows = 4;
  shape.columns = 5;
  return shape;
}

inline std::vector<DecodeRequest> four_requests(float temperature) {
  std::vector<DecodeRequest> all(4);
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    all[seed].sampling.temperature = temperature;
    all[seed].seed = seed;
  }
  return all;
}

// A toy whose drafter is a layer over the target's features, or a small model.
inline Toy make_toy(const SyntheticShape& shape, bool model, c10::ScalarType dtype = at::kFloat) {
  return model ? Toy(shape, small_model(shape), dtype) : Toy(shape, dtype);
}

// Codes int64 [I, n] of the first n places of an image as the ids that are fed for them: a row end follows
// the last code of every row but the image's last.
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

// Hands out the images 0 .. count - 1 of a run with slots; `request` says how each is sampled.
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
  Draft tree = last_token(state);
  Scores scores = prefill(models, prompts, state);
  for (std::int64_t cycle = 0;; ++cycle) {
    commit(state, tree, scores, verify(models, method, state, tree, scores));
    inspect(state, cycle);
    if (state.run.counters.steps.min().item<std::int64_t>() == state.run.counters.total)
      return state.run.counters.codes.narrow(1, 0, state.run.counters.total).contiguous();
    tree = draft(state);
    scores = score(models, state, tree);
  }
}

}  // namespace lamplighter::test

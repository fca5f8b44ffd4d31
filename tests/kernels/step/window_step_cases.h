#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <limits>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "kernels/commit/commit.h"
#include "kernels/ops.h"
#include "kernels/sampling/distribution.h"
#include "tests/kernels/common/operators.h"
#include "tests/kernels/common/random_counters.h"

// Cycles of speculative Jacobi decoding, and what the operators that window_step joins make of them.
namespace lamplighter::test {

// What the operators keep between cycles where they run one after the other.
struct WindowApart {
  at::Tensor tokens;  // int64 [I, L]
  at::Tensor rows;    // fp32 [I, L, V]
};

struct WindowStepCase {
  ops::WindowStep step;
  ops::WindowState window;
  ops::Counters state;
  WindowApart apart;
  at::Tensor base;  // fp32 [I, P, V]: logits by position, which cycles vary
  bool guided = false;

  std::vector<at::Tensor*> changed() {
    return {&state.steps,          &state.codes,   &state.root,     &state.bad,
            &state.report,         &state.lengths, &state.position, &state.root_ids,
            &state.root_positions, &window.tokens, &window.guessed, &window.ids,
            &window.positions};
  }

  // With tensors of its own, on a device.
  WindowStepCase copy(at::Device device = at::kCPU) const {
    WindowStepCase other = *this;
    ops::Filtering& filtering = other.step.filtering;
    for (at::Tensor* tensor :
         {&other.step.logits, &filtering.guidance, &filtering.temperature, &filtering.top_k, &filtering.top_p,
          &other.step.seeds, &other.step.temperature, &other.step.tokens, &other.step.depths,
          &other.step.logits_rows, &other.state.image, &other.window.logits, &other.window.statistics,
          &other.window.masses, &other.window.finished, &other.apart.tokens, &other.apart.rows}) {
      if (tensor->defined()) *tensor = tensor->clone().to(device);
    }
    for (at::Tensor* tensor : other.changed()) *tensor = tensor->clone().to(device);
    return other;
  }

  int64_t length() const { return step.depths.size(1) - 1; }

  at::Tensor guess() {
    const at::Tensor uniforms = ops::uniforms(step.seeds, state.steps, ops::Purpose::fill, length());
    return ops::fill_window(
        apart.tokens, apart.rows,
        {uniforms, state.steps, state.root, state.codes, step.columns, step.codes, step.fill});
  }

  // The window behind the first token: guesses.
  void begin() {
    const at::Tensor guessed = apart.tokens < 0;
    apart.tokens = guess();
    set_window(guessed);
  }

  void set_window(const at::Tensor& guessed) {
    window.tokens = at::cat({state.root.unsqueeze(1), apart.tokens}, 1);
    window.guessed = at::constant_pad_nd(guessed, {1, 0}, 0);
    std::tie(window.ids, window.positions) =
        ops::tree_rows(window.tokens, step.depths, state.position, state.first_image_id, state.last_position);
  }

  // Drafts that were not scored stay as they were.
  std::tuple<at::Tensor, at::Tensor, at::Tensor> keep_unscored(const at::Tensor& count, at::Tensor tokens,
                                                               at::Tensor rows) const {
    const at::Tensor position = count.unsqueeze(1) + 1 + at::arange(length());
    const at::Tensor old = position.clamp_max(length() - 1);
    const at::Tensor unscored = (position < length()) & (step.tokens.slice(1, 1).gather(1, old) < 0);
    const at::Tensor stayed = apart.rows.gather(1, old.unsqueeze(2).expand_as(apart.rows));
    const at::Tensor still = window.guessed.slice(1, 1).gather(1, old) & unscored;
    return {at::where(unscored, apart.tokens.gather(1, old), tokens),
            at::where(unscored.unsqueeze(2), stayed, rows), still};
  }

  // guide_and_filter, verify_tree, renew_window, commit_tokens, fill_window, tree_rows.
  ops::WindowRows run_apart() {
    const at::Tensor nodes = at::arange(length() + 1).unsqueeze(0);
    ops::ScoredTree tree;
    tree.target = ops::guide_and_filter(step.logits, step.filtering);
    tree.draft = apart.rows;
    tree.tokens = step.tokens;
    tree.parents = nodes - 1;
    tree.draft_rows = at::where(nodes < length(), nodes, -1);
    tree.uniforms = ops::uniforms(step.seeds, state.steps, ops::Purpose::accept, length() + 1);
    tree.temperature = step.temperature;
    tree.depth = length();
    const ops::Verified walk = ops::verify_tree(tree, {});
    tree.uniforms = ops::uniforms(step.seeds, state.steps, ops::Purpose::window, 2 * (length() + 1));
    auto [tokens, rows] = ops::renew_window(tree, walk.count, step.keep);
    at::Tensor still;
    std::tie(tokens, rows, still) = keep_unscored(walk.count, tokens, rows);
    ops::WindowRows kept{at::constant_pad_nd(walk.path, {0, 1}, -1), walk.count};
    if (step.logits_rows.defined()) {
      const at::Tensor last = walk.count.unsqueeze(1), row = step.logits_rows.gather(1, last);
      const at::Tensor ended = row.ne(last);
      kept.rows.scatter_(1, last + 1, row.masked_fill(ended.logical_not(), -1));
      kept.count = walk.count + ended.squeeze(1).to(at::kLong);
    }
    ops::commit_tokens(
        {step.tokens, step.depths, walk.path, walk.count, walk.token, walk.status, kept.rows, kept.count},
        state);
    apart = {tokens, rows};
    const at::Tensor guessed = (tokens < 0) | still;
    apart.tokens = guess();
    set_window(guessed);
    return kept;
  }

  // The logits of the next pass: its positions have them, changed a little. `rough`: how much.
  void score(std::mt19937& rng, int trial, float rough) {
    const int64_t images = base.size(0), nodes = length() + 1;
    std::vector<at::Tensor> all;
    for (int64_t image = 0; image < images; ++image) {
      const at::Tensor index =
          (at::arange(nodes) + state.steps[image].item<int64_t>()).remainder(base.size(1));
      all.push_back(base[image].index_select(0, index));
    }
    at::Tensor logits = at::stack(all);
    logits = logits + random_tensor(rng, logits.sizes(), at::kFloat, rough);
    if (trial % 3 == 0) logits = (logits * (trial % 9 == 0 ? 0.2 : 2)).round();  // ties, or little else
    if (trial % 13 == 5) logits[images - 1][nodes / 2][0].fill_(std::numeric_limits<float>::quiet_NaN());
    if (guided) {
      const at::Tensor other = logits + random_tensor(rng, logits.sizes(), at::kFloat, 0.2F);
      logits = at::stack({logits, other}, 1).flatten(0, 1);
    }
    step.logits = logits.to(window.logits.scalar_type());
    step.tokens = window.tokens.clone();
    step.logits_rows = at::Tensor();
    if (trial % 4 != 3) return;
    const at::Tensor end = integers({images, 1}, [&](int64_t) { return pick(rng, 0, nodes); });
    step.tokens.masked_fill_(step.depths > end, -1);
    step.logits_rows = at::where(step.depths.eq(end), nodes, step.depths).contiguous();
  }
};

// `trial` chooses what rows and settings are like: ties, guidance, dtypes, temperature 0, top-k and top-p,
// guesses, images that are nearly complete, row ends, rows that are no distribution.
inline WindowStepCase window_step_case(std::mt19937& rng, int trial, int64_t images, int64_t vocabulary,
                                       int64_t nodes) {
  WindowStepCase made;
  const bool pairs = made.guided = trial % 2 == 1;
  const bool greedy = trial % 7 == 6;
  const int64_t sequences = pairs ? 2 * images : images, length = nodes - 1;
  const at::ScalarType types[] = {at::kBFloat16, at::kFloat, at::kHalf};
  const auto each = [&](double value) { return at::full({images}, value, at::kFloat); };
  const auto number = [&](int64_t low, int64_t high) {
    return integers({images}, [&](int64_t) { return pick(rng, low, high); });
  };
  made.base = random_tensor(rng, {images, 2 * nodes, vocabulary}, at::kFloat, trial % 11 == 10 ? 0.05F : 2);
  const at::Tensor top_k = number(0, 1) * number(1, vocabulary);
  made.step.filtering = {each(trial % 6 == 1 ? 1 : 2.5), each(greedy && trial % 2 == 0 ? 0 : 0.9), top_k,
                         each(trial % 5 == 4 ? 0.8 : 1), trial % 5 < 3 ? "ar" : "eagle"};
  made.step.seeds = number(0, 1 << 30);
  made.step.temperature = each(greedy ? 0 : 0.9);
  made.step.depths = at::arange(nodes).unsqueeze(0);
  made.step.columns = pick(rng, 1, 8);
  made.step.codes = pick(rng, 1, vocabulary);
  made.step.fill = static_cast<WindowFill>(std::vector<int>{0, 1, 2, 4, 0}[trial % 5]);
  made.step.keep = trial % 3 != 1;
  made.state = random_counters(rng, images, sequences, vocabulary, 80, length);
  made.state.steps = trial % 6 == 4 ? number(77, 80) : number(0, 30);
  made.window.logits =
      at::full({sequences, nodes, vocabulary}, std::numeric_limits<float>::quiet_NaN(), types[trial / 2 % 3]);
  made.window.statistics =
      at::full({images, nodes, kRowStatistics}, std::numeric_limits<float>::quiet_NaN(), at::kFloat);
  made.window.masses = at::full({images, nodes}, std::numeric_limits<double>::quiet_NaN(), at::kDouble);
  made.window.finished = at::zeros({images}, at::kInt);
  made.apart = {at::full({images, length}, -1, at::kLong),
                at::zeros({images, length, vocabulary}, at::kFloat)};
  made.begin();
  return made;
}

// Cycles that can be compared: a complete image does not go on.
inline int window_cycles(int trial) {
  return trial % 6 == 4 ? 1 : 4;
}

}  // namespace lamplighter::test

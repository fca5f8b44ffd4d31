#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <limits>
#include <random>
#include <string>
#include <vector>

#include "kernels/commit/commit.h"
#include "kernels/ops.h"
#include "tests/kernels/common/operators.h"
#include "tests/kernels/common/random_counters.h"

// Random steps of autoregressive decoding, and what the operators that ar_step joins make of them.
namespace lamplighter::test {

struct ArStepCase {
  ops::ArStep step;
  ops::Counters state;

  std::vector<at::Tensor*> changed() {
    return {&state.steps,   &state.codes,    &state.root,     &state.bad,           &state.report,
            &state.lengths, &state.position, &state.root_ids, &state.root_positions};
  }

  // With tensors of its own, on a device.
  ArStepCase copy(at::Device device = at::kCPU) const {
    ArStepCase other = *this;
    ops::Filtering& filtering = other.step.filtering;
    for (at::Tensor* tensor :
         {&other.step.logits, &filtering.guidance, &filtering.temperature, &filtering.top_k, &filtering.top_p,
          &other.step.seeds, &other.step.temperature, &other.step.logits_rows, &other.state.image}) {
      if (tensor->defined()) *tensor = tensor->to(device);
    }
    for (at::Tensor* tensor : other.changed()) *tensor = tensor->clone().to(device);
    return other;
  }

  // guide_and_filter, verify_tree of a root alone, commit_tokens.
  void run_apart() {
    const int64_t images = step.seeds.size(0);
    const at::Tensor zero = at::zeros({1, 1}, step.seeds.options());
    ops::ScoredTree tree;
    tree.target = ops::guide_and_filter(step.logits, step.filtering);
    tree.tokens = state.root.unsqueeze(1);
    tree.parents = zero - 1;
    tree.draft_rows = zero - 1;
    tree.uniforms = ops::uniforms(step.seeds, state.steps, ops::Purpose::accept, 1);
    tree.temperature = step.temperature;
    const ops::Verified walk = ops::verify_tree(tree, {});
    at::Tensor kept_rows = at::full({images, 2}, -1, zero.options()), kept_count = walk.count;
    kept_rows.select(1, 0).zero_();
    if (step.logits_rows.defined()) kept_count = walk.count + step.logits_rows.select(1, 0);
    ops::commit_tokens(
        {tree.tokens, zero, walk.path, walk.count, walk.token, walk.status, kept_rows, kept_count}, state);
  }
};

// `trial` chooses what the rows and the settings are like: ties, guidance, dtypes, temperature 0, top-k and
// top-p, of both orders; rows that are no distribution, that have few finite logits, whose image is complete.
inline ArStepCase ar_step_case(std::mt19937& rng, int trial, int64_t images, int64_t vocabulary) {
  const bool pairs = trial % 2 == 1;
  at::Tensor logits = random_tensor(rng, {images, 1, vocabulary}, at::kFloat, trial % 11 == 10 ? 0.05F : 2);
  if (trial % 3 == 0)
    logits = (logits * (trial % 9 == 0 ? 0.2 : 2)).round();  // ties, or hardly anything else
  if (trial % 8 == 7)
    logits[0][0].narrow(0, 0, vocabulary - 1).fill_(-std::numeric_limits<float>::infinity());
  if (trial % 13 == 5) logits[images - 1][0][vocabulary / 2].fill_(std::numeric_limits<float>::quiet_NaN());
  if (trial % 13 == 9) logits[0].fill_(-std::numeric_limits<float>::infinity());
  if (pairs) {
    const at::Tensor other = logits + random_tensor(rng, logits.sizes(), at::kFloat, 0.5F);
    logits = at::stack({logits, other}, 1).flatten(0, 1);
  }
  const at::ScalarType types[] = {at::kBFloat16, at::kFloat, at::kHalf};
  const auto each = [&](double value) { return at::full({images}, value, at::kFloat); };
  const auto number = [&](int64_t low, int64_t high) {
    return integers({images}, [&](int64_t) { return pick(rng, low, high); });
  };
  ArStepCase made;
  const bool greedy = trial % 7 == 6;
  const at::Tensor top_k = number(0, 1) * number(1, vocabulary);
  made.step = {logits.to(types[trial / 2 % 3]),
               {each(trial % 6 == 1 ? 1 : 2.5), each(greedy && trial % 2 == 0 ? 0 : 0.9), top_k,
                each(trial % 5 == 4 ? 0.8 : 1), trial % 5 < 3 ? "ar" : "eagle"},
               number(0, 1 << 30),
               each(greedy ? 0 : 0.9),
               trial % 4 == 3 ? number(0, 1).unsqueeze(1) : at::Tensor()};
  made.state = random_counters(rng, images, pairs ? 2 * images : images, vocabulary, 20, trial % 3);
  return made;
}

}  // namespace lamplighter::test

#include "draft/windows/window_steps.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <tuple>

#include "kernels/sampling/distribution.h"

namespace lamplighter {

bool WindowSteps::serve(const Method& method) {
  const WindowOptions& window = method.window;
  return shape_of(*method.tree).chain && method.verify.rule == Rule::exact && method.verify.sampled &&
         !method.adapts && window.front == 0 && window.fill != WindowFill::sample;
}

WindowSteps::WindowSteps(const WindowOptions& options, const Target& target, const RunShape& shape,
                         std::int64_t nodes, std::int64_t codes)
    : fill_(options.fill), keep_(options.keep), columns_(shape.grid->columns), codes_(codes) {
  const Placement& placement = target.placement();
  const auto zeros = [&](at::IntArrayRef sizes, at::ScalarType type) {
    return at::zeros(sizes, at::dtype(type).device(placement.device));
  };
  const std::int64_t images = shape.images, sequences = shape.sequences();
  window_.tokens = zeros({images, nodes}, at::kLong);
  window_.guessed = zeros({images, nodes}, at::kBool);
  window_.logits = zeros({sequences, nodes, target.manifest().target.head}, placement.dtype);
  window_.statistics = zeros({images, nodes, kRowStatistics}, at::kFloat);
  window_.masses = zeros({images, nodes}, at::kDouble);
  window_.ids = zeros({sequences, nodes}, at::kLong);
  window_.positions = zeros({sequences, nodes}, at::kLong);
  window_.finished = zeros({images}, at::kInt);
}

void WindowSteps::begin(const RunState& run) {
  const ops::Counters& counters = run.counters;
  const std::int64_t images = window_.tokens.size(0), length = window_.tokens.size(1) - 1;
  const at::Tensor none = at::full({images, length}, -1, window_.tokens.options());
  at::Tensor rows = at::zeros({images, length, window_.logits.size(2)}, window_.statistics.options());
  const at::Tensor uniforms = ops::uniforms(run.seeds, counters.steps, ops::Purpose::fill, length);
  const at::Tensor guesses = ops::fill_window(
      none, rows, {uniforms, counters.steps, counters.root, counters.codes, columns_, codes_, fill_});
  window_.tokens.copy_(at::cat({counters.root.unsqueeze(1), guesses}, 1));
  window_.guessed.slice(1, 1).fill_(true);
  const at::Tensor depths = at::arange(length + 1, none.options()).unsqueeze(0);
  const auto [ids, positions] = ops::tree_rows(window_.tokens, depths, counters.position,
                                               counters.first_image_id, counters.last_position);
  window_.ids.copy_(ids);
  window_.positions.copy_(positions);
}

Draft WindowSteps::draft(const Topology& nodes) const {
  Draft draft{nodes, window_.tokens};
  draft.ids = window_.ids;
  draft.positions = window_.positions;
  return draft;
}

ops::WindowRows WindowSteps::finish(const at::Tensor& logits, const Draft& draft, const Scores& scores,
                                    RunState& run) {
  ops::WindowStep step;
  step.logits = logits;
  step.filtering = filtering(run, run.target_filter, draft.nodes.depths, logits.size(1));
  step.seeds = run.seeds;
  step.temperature = run.temperature;
  step.tokens = draft.tokens;
  step.depths = draft.nodes.depths;
  if (scores.logits_row) step.logits_rows = *scores.logits_row;
  step.columns = columns_;
  step.codes = codes_;
  step.fill = fill_;
  step.keep = keep_;
  return ops::window_step(step, window_, run.counters);
}

std::vector<PerImage> WindowSteps::per_image() {
  return {{&window_.tokens}, {&window_.guessed}, {&window_.logits},    {&window_.statistics},
          {&window_.masses}, {&window_.ids},     {&window_.positions}, {&window_.finished}};
}

}  // namespace lamplighter

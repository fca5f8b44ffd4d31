#include "bench/synthetic_bench.h"

#include <ATen/ops/ones.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>

#include "bundle/machine.h"
#include "bundle/modules/drafter.h"
#include "bundle/modules/target.h"
#include "bundle/synthetic/synthetic.h"
#include "decode/prompts.h"
#include "lamplighter/method.h"
#include "propose/method.h"
#include "propose/registry.h"

namespace lamplighter {
namespace {

// A caption that fills the rows of a prompt.
Prompts full_prompt(const Models& models, bool guided) {
  const c10::InferenceMode inference;
  const Target& target = *models.target;
  const PromptEntry& prompt = *target.manifest().prompt;
  const at::TensorOptions options = at::dtype(target.placement().dtype).device(target.placement().device);
  Condition condition;
  if (prompt.kind == "tokens") {
    condition.ids.assign(static_cast<std::size_t>(prompt.length), 0);
    condition.unconditional = prompt.unconditional_pad ? condition.ids : prompt.unconditional;
    return embed_prompts(models, {condition}, guided);
  }
  condition.features = at::ones({1, prompt.length, prompt.features}, options);
  condition.mask = at::ones({1, prompt.length}, options.dtype(at::kLong));
  return embed_prompts(models, {condition}, guided);
}

Method static_tree(const std::string& tree, const Manifest& manifest, const Placement& placement,
                   bool greedy) {
  MethodOptions options;
  options.method = "eagle";
  options.tree = tree;
  return make_method(resolve_method(options, manifest), manifest, placement.device, greedy);
}

double scripted_mean(const Tree& tree, const CycleOptions& options) {
  double sum = 0;
  for (int cycle = 0; cycle < options.block; ++cycle) {
    const std::int64_t count = options.accepted[static_cast<std::size_t>(cycle) % options.accepted.size()];
    sum += static_cast<double>(std::min(count, tree.max_depth()));
  }
  return sum / options.block;
}

}  // namespace

SyntheticReport run_synthetic(const SyntheticShape& shape, const std::vector<std::string>& trees,
                              const CycleOptions& options, const Placement& placement,
                              const std::function<bool(int round)>& on_round) {
  const SyntheticBundle bundle = make_synthetic(shape, placement);
  const Manifest& manifest = bundle.manifest;
  const Target target(manifest, bundle.target);
  const DecodeRequest request{manifest.sampling, 42};
  const bool guided = is_guided({request});
  std::vector<Method> methods{Method{}};
  std::vector<std::string> names{kBaseline};
  std::vector<Drafter> drafter;
  if (bundle.drafter) drafter.emplace_back(manifest.drafters.begin()->second, *bundle.drafter);
  for (const std::string& tree : trees) {
    methods.push_back(static_tree(tree, manifest, placement, request.sampling.temperature <= 0));
    names.push_back(tree);
  }
  const Models models{&target, drafter.empty() ? nullptr : &drafter.front()};
  const Grid& grid = manifest.grids.front();
  const Prompts prompts = full_prompt(models, guided);
  const MeasuredCycles measured = measure_cycles(models, methods, prompts, request, grid, options, on_round);
  SyntheticReport report;
  report.target_bytes = bundle.target_bytes;
  report.drafter_bytes = bundle.drafter_bytes;
  report.context = prompts.longest() + rows_to_middle(grid);
  report.peak_bytes = peak_memory(placement.device);
  if (placement.device.is_cpu()) report.bandwidth = streaming_rate(options.clock);
  // Rows of all sequences: prompts without a caption may be shorter.
  const double context = static_cast<double>(prompts.valid.sum().item<std::int64_t>() +
                                             prompts.valid.size(0) * rows_to_middle(grid));
  const double target_rows = context * static_cast<double>(row_bytes(manifest.cache, placement));
  CacheEntry layer = manifest.cache;
  layer.layers = 1;
  const double drafter_rows =
      context * static_cast<double>(row_bytes(layer, {placement.device, placement.dtype}));
  for (std::size_t i = 0; i < methods.size(); ++i) {
    const Tree& tree = *methods[i].tree;
    SyntheticRow row;
    row.name = names[i];
    row.rows = tree.size() * (guided ? 2 : 1);
    row.drafter_passes = tree.max_depth();
    row.accepted = scripted_mean(tree, options);
    row.rounds = measured.rounds[i];
    row.kernels = measured.kernels[i];
    row.stages = median_stages(row.rounds);
    std::vector<double> times, ratios;
    for (std::size_t round = 0; round < row.rounds.size(); ++round) {
      times.push_back(total(row.rounds[round]));
      ratios.push_back(times.back() / total(measured.rounds[0][round]));
    }
    row.cycle_ms = summarise(std::move(times)).p50;
    row.ratio = ratio_interval(ratios);
    const auto passes = static_cast<double>(row.drafter_passes);
    row.weight_bytes =
        static_cast<double>(bundle.target_bytes) + passes * static_cast<double>(bundle.drafter_bytes);
    row.cache_bytes = target_rows + passes * drafter_rows;
    report.rows.push_back(std::move(row));
  }
  return report;
}

}  // namespace lamplighter

#include "bench/synthetic_bench.h"

#include <ATen/ops/ones.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>

#include "bundle/drafter.h"
#include "bundle/target.h"
#include "decode/method.h"
#include "decode/prompts.h"

namespace lamplighter {
namespace {

// A caption that fills its rows: the longest context.
Prompts full_prompt(const Target& target, bool guided) {
  const c10::InferenceMode inference;
  const PromptEntry& prompt = *target.manifest().prompt;
  const at::TensorOptions options = at::dtype(target.placement().dtype).device(target.placement().device);
  Condition condition;
  condition.features = at::ones({1, prompt.length, prompt.features}, options);
  condition.mask = at::ones({1, prompt.length}, options.dtype(at::kLong));
  return embed_prompts(target, {condition}, guided);
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
  std::vector<std::string> names{"ar"};
  std::vector<Drafter> drafter;
  if (bundle.drafter) drafter.emplace_back(manifest.drafters.begin()->second, *bundle.drafter);
  for (const std::string& tree : trees) {
    methods.push_back(static_tree(tree, manifest, placement, request.sampling.temperature <= 0));
    names.push_back(tree);
  }
  const Models models{&target, drafter.empty() ? nullptr : &drafter.front()};
  const std::vector<CycleRounds> rounds = measure_cycles(models, methods, full_prompt(target, guided),
                                                         request, manifest.grids.front(), options, on_round);
  SyntheticReport report;
  report.target_bytes = bundle.target_bytes;
  report.drafter_bytes = bundle.drafter_bytes;
  report.context = manifest.prompt->length + manifest.grids.front().tokens() / 2 - 1;
  if (placement.device.is_cpu()) report.streaming_rate = streaming_rate(options.clock);
  for (std::size_t i = 0; i < methods.size(); ++i) {
    const Tree& tree = methods[i].tree;
    SyntheticRow row;
    row.name = names[i];
    row.rows = tree.size() * (guided ? 2 : 1);
    row.drafter_passes = tree.max_depth();
    row.accepted = scripted_mean(tree, options);
    row.rounds = rounds[i];
    row.stages = median_stages(rounds[i]);
    std::vector<double> times, ratios;
    for (std::size_t round = 0; round < rounds[i].size(); ++round) {
      times.push_back(total(rounds[i][round]));
      ratios.push_back(times.back() / total(rounds[0][round]));
    }
    row.cycle_ms = summarise(std::move(times)).p50;
    row.ratio = ratio_interval(ratios);
    row.bytes = static_cast<double>(bundle.target_bytes) +
                static_cast<double>(row.drafter_passes) * static_cast<double>(bundle.drafter_bytes);
    report.rows.push_back(std::move(row));
  }
  return report;
}

}  // namespace lamplighter

#include "bench/synthetic_bench.h"

#include <ATen/ops/ones.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/format.h"
#include "bundle/modules/draft_model.h"
#include "bundle/modules/target.h"
#include "bundle/synthetic/synthetic.h"
#include "decode/prompts.h"
#include "device/machine.h"
#include "draft/method.h"
#include "draft/registry.h"
#include "lamplighter/method.h"

namespace lamplighter {
namespace {

// Prompts of full length for `images` images.
Prompts full_prompts(const Models& models, bool guided, int images) {
  const c10::InferenceMode inference;
  const Target& target = *models.target;
  const PromptEntry& prompt = *target.manifest().prompt;
  const at::TensorOptions options = at::dtype(target.placement().dtype).device(target.placement().device);
  Condition condition;
  if (prompt.kind == "tokens") {
    condition.ids.assign(static_cast<std::size_t>(prompt.length), 0);
    condition.unconditional = prompt.unconditional_pad ? condition.ids : prompt.unconditional;
  } else {
    condition.features = at::ones({1, prompt.length, prompt.features}, options);
    condition.mask = at::ones({1, prompt.length}, options.dtype(at::kLong));
  }
  return embed_prompts(models, std::vector<Condition>(static_cast<std::size_t>(images), condition), guided);
}

// A resolved method and its passes of the draft model per cycle.
struct Measured {
  std::string name;
  Method method;
  std::int64_t drafter_passes = 0;
};

Measured measured_method(const BenchMethod& named, const Manifest& manifest, const Placement& placement) {
  const MethodEntry& entry = find_method(named.options.method);
  const bool fixed = !entry.drafts() || entry.tree == TreeKind::fixed || entry.tree == TreeKind::window ||
                     entry.tree == TreeKind::multi_candidate;
  if (!fixed || entry.drafts_itself() || (entry.needs_drafter() && !entry.needs_layer()))
    throw Error(ExitCode::usage,
                "method: got " + named.name +
                    ", expected one that random weights can measure: eagle or another method with "
                    "its drafter and a fixed tree, or sjd or another method with a window");
  const char* device = placement.device.is_cpu() ? "cpu" : "cuda";
  const MethodOptions resolved = resolve_method(named.options, manifest, device);
  Measured measured{named.name,
                    make_method(resolved, manifest, placement.device, manifest.sampling.temperature <= 0)};
  if (entry.keeps_window()) {
    measured.drafter_passes = measured.method.window.front;
  } else if (entry.drafts()) {
    measured.drafter_passes = measured.method.tree->max_depth();
  }
  return measured;
}

// Bytes of the weights and of the caches: each method keeps its own for the whole run.
std::int64_t needed_bytes(const SyntheticShape& shape, const std::vector<Measured>& methods, int images,
                          const Placement& placement) {
  const Manifest manifest = synthetic_manifest(shape, placement.dtype);
  const std::int64_t sequences = std::int64_t{images} * (is_guided({{manifest.sampling, 0}}) ? 2 : 1);
  std::int64_t row = 0;
  for (const Measured& measured : methods) {
    row += row_bytes(manifest.cache, placement) +
           cache_numbers(measured.method.options, manifest) *
               static_cast<std::int64_t>(c10::elementSize(placement.dtype));
  }
  return weight_bytes(shape, placement.dtype) + row * sequences * manifest.cache.max_length;
}

// Throws Error(memory) with the number of layers that fit.
void require_room(const SyntheticShape& shape, const std::vector<Measured>& methods, int images,
                  const Placement& placement) {
  SyntheticShape none = shape;
  none.layers = 0;
  const std::int64_t needed = needed_bytes(shape, methods, images, placement);
  const std::int64_t beside = needed_bytes(none, methods, images, placement);
  const std::int64_t room = free_memory(placement.device).value_or(needed) - beside;
  const double layer = static_cast<double>(needed - beside) / static_cast<double>(shape.layers);
  const auto fit = static_cast<std::int64_t>(static_cast<double>(room) / layer);
  require_memory(placement.device, needed, 1,
                 "random weights and caches of " + counted(methods.size(), "method"),
                 fit > 0 ? "layers " + std::to_string(fit) + " fits" : "fewer layers do not fit either");
}

double scripted_mean(const Tree& tree, const CycleOptions& options) {
  double sum = 0;
  for (int cycle = 0; cycle < options.block; ++cycle) {
    const std::int64_t count = options.accepted[static_cast<std::size_t>(cycle) % options.accepted.size()];
    sum += static_cast<double>(std::min(count, tree.max_depth()));
  }
  return sum / options.block;
}

// The results of a method, relative to the rounds of the baseline.
SyntheticRow row_of(const Measured& measured, CycleRounds rounds, const CycleRounds& baseline) {
  SyntheticRow row;
  row.name = measured.name;
  row.drafter_passes = measured.drafter_passes;
  row.rounds = std::move(rounds);
  row.stages = median_stages(row.rounds);
  std::vector<double> times, ratios;
  for (std::size_t round = 0; round < row.rounds.size(); ++round) {
    times.push_back(total(row.rounds[round]));
    ratios.push_back(times.back() / total(baseline[round]));
  }
  row.cycle_ms = summarise(std::move(times)).p50;
  row.ratio = ratio_interval(ratios);
  return row;
}

}  // namespace

SyntheticReport run_synthetic(SyntheticShape shape, const std::vector<BenchMethod>& methods,
                              const std::vector<int>& batch_sizes, const CycleOptions& options,
                              const Placement& placement, const std::function<bool(int round)>& on_round,
                              const BytesMade& made) {
  std::vector<Measured> all;
  std::vector<Method> run;
  const Manifest described = synthetic_manifest(shape, placement.dtype);
  for (const BenchMethod& method : methods) {
    all.push_back(measured_method(method, described, placement));
    run.push_back(all.back().method);
  }
  shape.drafter = std::any_of(methods.begin(), methods.end(), [](const BenchMethod& method) {
    return find_method(method.options.method).needs_drafter();
  });
  require_room(shape, all, *std::max_element(batch_sizes.begin(), batch_sizes.end()), placement);
  const SyntheticBundle bundle = make_synthetic(shape, placement, made);
  const Manifest& manifest = bundle.manifest;
  const Target target(manifest, bundle.target);
  const DecodeRequest request{manifest.sampling, 42};
  const bool guided = is_guided({request});
  std::optional<DraftModel> drafter;
  if (bundle.drafter) drafter.emplace(manifest.drafters.begin()->second, *bundle.drafter);
  const Models models{&target, drafter ? &*drafter : nullptr};
  const Grid& grid = manifest.grids.front();
  CacheEntry layer = manifest.cache;
  layer.layers = 1;
  SyntheticReport report;
  report.target_bytes = bundle.target_bytes;
  report.drafter_bytes = bundle.drafter_bytes;
  for (const int images : batch_sizes) {
    const Prompts prompts = full_prompts(models, guided, images);
    const MeasuredCycles cycles = measure_cycles(
        models, run, prompts, std::vector<DecodeRequest>(static_cast<std::size_t>(images), request), grid,
        options, on_round);
    report.context = prompts.longest() + rows_to_middle(grid);
    // Cache slots of all sequences; unconditional prompts may be shorter.
    const double context = static_cast<double>(prompts.valid.sum().item<std::int64_t>() +
                                               prompts.valid.size(0) * rows_to_middle(grid));
    const double target_rows = context * static_cast<double>(row_bytes(manifest.cache, placement));
    const double drafter_rows =
        context * static_cast<double>(row_bytes(layer, {placement.device, placement.dtype}));
    for (std::size_t i = 0; i < all.size(); ++i) {
      const Tree& tree = *all[i].method.tree;
      SyntheticRow row = row_of(all[i], cycles.rounds[i], cycles.rounds[0]);
      row.batch_size = images;
      row.rows = tree.size() * (guided ? 2 : 1) * images;
      row.accepted = scripted_mean(tree, options);
      row.decode_ms = row.cycle_ms * static_cast<double>(grid.tokens()) / (1 + row.accepted);
      row.kernels = cycles.kernels[i];
      const auto passes = static_cast<double>(row.drafter_passes);
      row.weight_bytes =
          static_cast<double>(bundle.target_bytes) + passes * static_cast<double>(bundle.drafter_bytes);
      row.cache_bytes = target_rows + passes * drafter_rows;
      report.rows.push_back(std::move(row));
    }
  }
  report.peak_bytes = peak_memory(placement.device);
  if (placement.device.is_cpu()) report.bandwidth = streaming_rate(options.clock);
  return report;
}

}  // namespace lamplighter

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "base/format.h"
#include "base/memory.h"
#include "bench/machine/environment.h"
#include "bench/machine/nvml.h"
#include "bench/machine/published.h"
#include "bench/methods.h"
#include "bench/report/json.h"
#include "bench/synthetic_bench.h"
#include "device/devices.h"
#include "device/machine.h"
#include "lamplighter/error.h"
#include "lamplighter/version.h"
#include "tools/commands/bench.h"
#include "tools/signals.h"
#include "tree/tree.h"

namespace lamplighter::cli {
namespace {

// Rounds of large models on few cores would otherwise take minutes.
constexpr double kRoundsMs = 20'000;

// One number is a mean, several are the counts of consecutive cycles.
std::vector<std::int64_t> accepted_counts(const std::vector<double>& values) {
  std::vector<std::int64_t> counts;
  for (const double value : values) {
    const bool whole = value == static_cast<double>(static_cast<std::int64_t>(value));
    if (!(value >= 0 && value < kMaxTreeNodes) || (values.size() > 1 && !whole)) {
      throw Error(ExitCode::usage, "--accept: got " + std::to_string(value) +
                                       ", expected a mean, or whole numbers, 0 or more");
    }
    counts.push_back(static_cast<std::int64_t>(value));
  }
  return values.size() == 1 ? accepted_around(values.front()) : counts;
}

// The default is eagle with a short chain.
std::vector<BenchMethod> methods_of(const BenchFlags& flags) {
  if (!flags.methods.empty()) return bench_methods(flags.methods, sweep_of(flags));
  if (!flags.trees.empty() || !flags.sweep.empty()) return bench_methods({"eagle"}, sweep_of(flags));
  return bench_methods({"eagle:tree=chain-3"});
}

// The rounds that were measured; a larger batch may have had fewer.
std::string rounds_of(const SyntheticReport& report) {
  const auto [least, most] = std::minmax_element(
      report.rows.begin(), report.rows.end(),
      [](const SyntheticRow& a, const SyntheticRow& b) { return a.rounds.size() < b.rounds.size(); });
  return (least->rounds.size() < most->rounds.size() ? std::to_string(least->rounds.size()) + " to " : "") +
         counted(most->rounds.size(), "interleaved round");
}

}  // namespace

BenchResults bench_synthetic(const BenchFlags& flags, Terminal& terminal) {
  const SyntheticShape shape = synthetic_shape(flags.synthetic, flags.layers);
  CycleOptions options;
  options.rounds = flags.repeats.value_or(12);
  if (!flags.repeats) options.most_ms = kRoundsMs;
  options.clock = clock_from(flags.clock);
  options.accepted = accepted_counts(flags.accept.empty() ? std::vector<double>{1.5} : flags.accept);
  const std::vector<BenchMethod> methods = methods_of(flags);
  const Placement placement = resolve_placement(flags.model.runtime);
  options.graph = flags.model.options().graph;
  options.note = flags.model.runtime.note;
  // On a device cycles are queued in blocks, as in generation: the next cycle waits there when one ends.
  options.stages = placement.device.is_cpu() || !options.graph;
  if (!options.stages) options.block = 16;
  const std::string name = device_name(placement.device);
  const Nvml nvml(device_bus_id(placement.device));
  Environment environment = read_environment(placement.device.is_cpu() ? "" : name, nvml);
  std::optional<OrderlyStop> orderly;  // once the weights are made, which a signal ends at once
  const LoadMeter load;
  terminal.detail("making random weights, " + format_bytes(weight_bytes(shape, placement.dtype)));
  const auto made = [&](std::int64_t bytes, std::int64_t all) {
    constexpr double kGiB = 1 << 30;
    terminal.progress(static_cast<double>(bytes) / kGiB, static_cast<double>(all) / kGiB, "GiB of weights",
                      bytes < all ? "" : "laying them out");
  };
  SyntheticReport report = run_synthetic(
      shape, methods, flags.batch_sizes, options, placement,
      [&](int round) {
        if (!orderly) orderly.emplace();
        terminal.detail("round " + std::to_string(round + 1) + " of " + std::to_string(options.rounds));
        return stop_signal() == 0;
      },
      made);
  environment.others = load.others();
  if (const std::optional<double> rate = published_bandwidth(name)) {
    report.bandwidth = *rate;
    report.bandwidth_is_published = true;
  }
  const std::string words =
      "synthetic " + shape.name + ": random weights on " + name + " in " + dtype_name(placement) + ", " +
      (placement.rounded_cache ? "caches in int8, " : "") + counted(report.context, "token") +
      " of context, " + rounds_of(report) + " of " + counted(options.block, "cycle") + "; " +
      (options.clock == Clock::wall ? "wall-clock" : "processor") +
      " times are real, acceptance is scripted" +
      (report.rows.front().kernels > 0 ? "; cycles are captured graphs" : "") +
      (report.bandwidth > 0
           ? "; floor: bytes read over " + format_fixed(report.bandwidth / 1e6, 1) + " GB/s, " +
                 (report.bandwidth_is_published ? "as published" : "measured here")
           : "") +
      "; memory at most " + format_bytes(report.peak_bytes);
  Json json{{"version", kVersion},
            {"model", "synthetic " + shape.name},
            {"device", placement.device.str()},
            {"dtype", dtype_name(placement)},
            {"cache_dtype", cache_dtype_name(placement)},
            {"threads", flags.model.runtime.threads},
            {"clock", flags.clock},
            {"device_name", name},
            {"environment", to_json(environment)}};
  json.update(to_json(report));
  std::vector<std::string> lines{words};
  for (std::string& line : heading(environment)) lines.push_back(std::move(line));
  return {std::move(lines), tables(report), {}, std::move(json), {}};
}

}  // namespace lamplighter::cli

#include "measure/trial.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/stopwatch.h"
#include "decode/recorder.h"
#include "draft/auto.h"
#include "draft/registry.h"
#include "lamplighter/method.h"
#include "measure/cycles.h"
#include "measure/tune.h"
#include "tree/tune.h"

namespace lamplighter {
namespace {

// Limits on the measurement of one method.
constexpr double kAcceptanceMs = 600;     // no image begins after so long
constexpr std::size_t kLeastCycles = 24;  // however long they take
constexpr std::size_t kMostCycles = 400;  // enough for a standard error of some 3 %
constexpr double kRoundsMs = 250;         // no round of scripted cycles begins after so long
constexpr std::size_t kMostLengths = 3;   // of a method with a drafter, each of which is timed

// Drafts per cycle that are compared. A window costs no pass of a drafter, and a GPU has room for more rows.
std::vector<std::int64_t> lengths_of(const MethodEntry& entry, const Manifest& manifest,
                                     const MethodOptions& resolved, bool is_cpu) {
  const std::vector<std::int64_t> all =
      is_cpu ? std::vector<std::int64_t>{1, 2, 3, 5, 7} : std::vector<std::int64_t>{1, 3, 5, 7, 15, 31};
  std::int64_t most = entry.tree == TreeKind::fixed ? 7 : all.back();
  if (entry.needs_heads()) most = std::min(most, manifest.drafters.at(resolved.drafter).heads);
  std::vector<std::int64_t> lengths;
  for (const std::int64_t length : all) {
    if (length <= most) lengths.push_back(length);
  }
  return lengths;
}

// Whether a trial can tell what the method gains: with chains that it drafts by itself or by a drafter.
bool is_tried(const MethodEntry& entry, const Manifest& manifest) {
  const bool chains = entry.tree == TreeKind::window || entry.tree == TreeKind::refined ||
                      (entry.tree == TreeKind::fixed && entry.needs_drafter());
  return chains && !traits_of(entry.rule).lossy() && missing_for(entry, manifest).empty();
}

const CycleCost* find_cost(const TableRun& run, std::int64_t rows) {
  const auto found = std::find_if(run.costs.begin(), run.costs.end(),
                                  [&](const CycleCost& cost) { return cost.rows == rows; });
  return found == run.costs.end() ? nullptr : &*found;
}

// How far the drafts of a chain are accepted.
struct Acceptance {
  SiblingAcceptance by_depth;
  double certainty = 1;  // 1 less the relative standard error of the accepted drafts per cycle

  double tokens(std::int64_t length) const {
    const Tree chain = preset_tree("chain-" + std::to_string(length));
    return 1 + (expected_tokens(chain, by_depth) - 1) * certainty;
  }
};

// Measures the methods of a trial one by one.
class Measurement {
 public:
  explicit Measurement(const Trial& trial)
      : trial_(trial),
        is_cpu_(trial.placement.device.is_cpu()),
        is_greedy_(trial.requests.front().sampling.temperature <= 0),
        baseline_(method_of({}, 0)) {}

  // Adds the method, whose options leave the tree open, with its best length.
  void add(const MethodOptions& tried, TableRun& run);

 private:
  Method method_of(const MethodOptions& tried, std::int64_t length) const {
    return make_method(resolved(tried, length), trial_.manifest, trial_.placement.device, is_greedy_);
  }
  MethodOptions resolved(const MethodOptions& tried, std::int64_t length) const {
    MethodOptions options = tried;
    if (length > 0) options.tree = "chain-" + std::to_string(length);
    return resolve_method(options, trial_.manifest, is_cpu_ ? "cpu" : "cuda",
                          static_cast<int>(trial_.requests.size()));
  }
  Prompts prompts_of(const Models& models, const Method& method) const {
    return embed_prompts(models, trial_.conditions, is_guided(trial_.requests), method.padded);
  }
  Acceptance acceptance(const Models& models, const MethodOptions& tried, std::int64_t length) const;
  // Milliseconds of a cycle over the milliseconds of the baseline's, both medians of rounds that take turns.
  double cost(const Models& models, const MethodOptions& tried, std::int64_t length, double tokens,
              TableRun& run) const;

  const Trial& trial_;
  const bool is_cpu_, is_greedy_;
  const Method baseline_;
};

Acceptance Measurement::acceptance(const Models& models, const MethodOptions& tried,
                                   std::int64_t length) const {
  const Method method = method_of(tried, length);
  const Prompts prompts = prompts_of(models, method);
  std::vector<DecodeRequest> requests = trial_.requests;
  std::vector<Statistics> images;
  std::size_t cycles = 0;
  const Stopwatch watch;
  while (cycles < kMostCycles && (cycles < kLeastCycles || watch.elapsed() < kAcceptanceMs)) {
    Recorder recorder(method);
    try {
      decode(models, method, prompts, requests, *trial_.grid, [&](const Report& report) {
        recorder.add(report);
        cycles += report.images.size();
        return cycles < kLeastCycles || watch.elapsed() < kAcceptanceMs;
      });
    } catch (const Error& error) {
      if (error.code() != ExitCode::interrupted) throw;
    }
    for (std::size_t image = 0; image < requests.size(); ++image) {
      images.push_back(recorder.of(static_cast<std::int64_t>(image)).statistics);
      requests[image].seed += requests.size();
    }
  }
  Acceptance found{measured_acceptance(*method.tree, images, 1)};
  double sum = 0, squares = 0, count = 0;
  for (const Statistics& image : images) {
    for (const Cycle& cycle : image.cycles) {
      const auto accepted = static_cast<double>(cycle.accepted);
      sum += accepted;
      squares += accepted * accepted;
      ++count;
    }
  }
  if (sum > 0) {
    const double mean = sum / count, variance = std::max(0.0, squares / count - mean * mean);
    found.certainty = std::max(0.0, 1 - std::sqrt(variance / count) / mean);
  }
  return found;
}

double Measurement::cost(const Models& models, const MethodOptions& tried, std::int64_t length, double tokens,
                         TableRun& run) const {
  const std::vector<Method> methods{baseline_, method_of(tried, length)};
  CycleOptions options;
  options.stages = false;
  options.most_ms = kRoundsMs;
  options.accepted = accepted_around(tokens - 1);
  const MeasuredCycles measured = measure_cycles(models, methods, prompts_of(models, methods.back()),
                                                 trial_.requests, *trial_.grid, options);
  const double baseline = median_stages(measured.rounds.front()).cycle;
  const double cycle = median_stages(measured.rounds.back()).cycle;
  if (models.drafter == nullptr) {
    if (run.costs.empty()) run.costs.push_back({1, baseline});
    if (find_cost(run, length + 1) == nullptr) run.costs.push_back({length + 1, cycle});
  }
  return cycle / baseline;
}

void Measurement::add(const MethodOptions& tried, TableRun& run) {
  const MethodEntry& entry = find_method(tried.method);
  const MethodOptions first = resolved(tried, 1);
  const Models models = trial_.models(first.drafter);
  const std::vector<std::int64_t> lengths = lengths_of(entry, trial_.manifest, first, is_cpu_);
  const Acceptance accepted = acceptance(models, tried, lengths.back());
  TableRow best{tried, std::nullopt, 0};
  // Passes of the drafter come on top of the rows, so that the best length is at most this one.
  const auto row_cost = [&](std::int64_t length) {
    const CycleCost* known = find_cost(run, length + 1);
    return known == nullptr ? 1.0 : known->ms / run.costs.front().ms;
  };
  auto end = lengths.end();
  if (models.drafter != nullptr) {
    end = std::max_element(lengths.begin(), lengths.end(),
                           [&](std::int64_t a, std::int64_t b) {
                             return accepted.tokens(a) / row_cost(a) < accepted.tokens(b) / row_cost(b);
                           }) +
          1;
  }
  auto begin = lengths.begin();
  if (models.drafter != nullptr && static_cast<std::size_t>(end - begin) > kMostLengths)
    begin = end - kMostLengths;
  for (auto length = begin; length != end; ++length) {
    const double tokens = accepted.tokens(*length);
    const double speedup = tokens / cost(models, tried, *length, tokens, run);
    if (speedup <= best.speedup) continue;
    best.speedup = speedup;
    best.method.tree = "chain-" + std::to_string(*length);
  }
  run.rows.push_back(std::move(best));
}

}  // namespace

TableRun try_methods(const Trial& trial) {
  TableRun run;
  run.batch_size = static_cast<int>(trial.requests.size());
  run.is_trial = true;
  run.rows.push_back({{}, std::nullopt, 1});
  Measurement measurement(trial);
  // Methods without a drafter come first: they tell what a pass over more rows costs.
  for (const bool drafted : {false, true}) {
    for (const MethodEntry& entry : methods()) {
      if (entry.needs_drafter() != drafted || !is_tried(entry, trial.manifest)) continue;
      MethodOptions tried;
      tried.method = entry.name;
      measurement.add(tried, run);
      if (!entry.needs_refiner()) continue;
      tried.tail = "keep";  // other windows keep their drafts by default
      measurement.add(tried, run);
    }
  }
  return run;
}

}  // namespace lamplighter

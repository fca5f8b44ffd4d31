#include <algorithm>
#include <utility>

#include "base/format.h"
#include "bench/bench.h"
#include "bench/methods.h"
#include "bench/report/json.h"
#include "bench/report/report.h"
#include "lamplighter/version.h"
#include "tools/bench_report.h"
#include "tools/commands/tune_tree.h"
#include "tools/signals.h"

namespace lamplighter::cli {
namespace {

Json about(const TuneFlags& flags, const TextToImage& engine, const Manifest& manifest,
           const std::vector<BenchReport>& reports, std::size_t images, int rounds) {
  Json all = Json::array();
  for (const BenchReport& report : reports)
    all.push_back({{"method", report.method},
                   {"acceptance_length", to_json(report.acceptance_length)},
                   {"step_compression", to_json(report.step_compression)},
                   {"tokens_per_second", report.tokens_per_second.p50},
                   {"speedup", to_json(report.speedup)}});
  return {{"made_by", std::string("lamplighter ") + kVersion + " tune-tree"},
          {"model", manifest.name},
          {"device", engine.device()},
          {"dtype", engine.dtype()},
          {"threads", flags.model.runtime.threads},
          {"method", flags.method},
          {"images", images},
          {"rounds", rounds},
          {"candidates", std::move(all)}};
}

// A table of the candidates, then the flags of the best one.
std::vector<std::string> lines_of(const std::vector<BenchReport>& reports, const std::string& words) {
  Table table{{"candidate", "S", "speed-up [95 %]", "tokens/s"}, {}};
  for (const BenchReport& report : reports)
    table.rows.push_back({report.method, format_fixed(report.step_compression.mean, 2),
                          with_interval(report.speedup), format_fixed(report.tokens_per_second.p50, 0)});
  std::vector<std::string> lines = table.lines();
  lines.insert(lines.end(), {"", words});
  return lines;
}

}  // namespace

Tuned tune_by_generation(const TuneFlags& flags, const Manifest& manifest,
                         const std::vector<BenchMethod>& candidates, const std::vector<Request>& requests,
                         Terminal& terminal) {
  BenchOptions options;
  options.methods = candidates;
  options.requests = requests;
  options.repeats = flags.rounds.value_or(requests.size() == 1 ? 5 : 1);
  TextToImage engine(manifest.directory, flags.model.options());
  const OrderlyStop orderly;
  const auto goes_on = [](const auto&...) { return stop_signal() == 0; };
  const auto total = static_cast<std::int64_t>(candidates.size() * requests.size()) * options.repeats;
  std::int64_t done = 0;
  const auto generated = [&](const BenchSample&, const Result&) {
    terminal.progress(++done, total, "images");
    return stop_signal() == 0;
  };
  const std::vector<BenchReport> all = report(run_bench(engine, options, generated, goes_on));
  const auto slower = [](const BenchReport& a, const BenchReport& b) {
    return a.speedup.mean < b.speedup.mean;
  };
  // The first one is ar.
  const auto best = std::max_element(all.begin() + 1, all.end(), slower);
  const MethodOptions& found = candidates[static_cast<std::size_t>(best - all.begin())].options;
  const std::string words = method_flags(found);
  Tuned tuned;
  if (!found.tree.empty()) tuned.tree = preset_tree(found.tree);
  tuned.about = about(flags, engine, manifest, all, requests.size(), options.repeats);
  tuned.about["best"] = words;
  tuned.about["acceptance_length"] = to_json(best->acceptance_length);
  tuned.about["speedup"] = to_json(best->speedup);
  tuned.speedup = best->speedup;
  tuned.lines = lines_of(all, words);
  tuned.words = best->method + ": " + with_interval(best->acceptance_length) + " tokens a cycle, " +
                times_as_fast_as_ar(best->speedup) + ", from " + counted(requests.size(), "image");
  return tuned;
}

}  // namespace lamplighter::cli

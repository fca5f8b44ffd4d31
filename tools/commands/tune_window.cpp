#include <algorithm>
#include <utility>

#include "bench/bench.h"
#include "bench/methods.h"
#include "bench/report/json.h"
#include "bench/report/report.h"
#include "lamplighter/version.h"
#include "propose/registry.h"
#include "tools/bench_report.h"
#include "tools/signals.h"
#include "tune_tree.h"

namespace lamplighter::cli {
namespace {

// ar, then the method with windows of 1, 2, ... drafted nodes; of fans those with few candidates, too, which
// pay first.
std::vector<BenchMethod> windows(const TuneFlags& flags, TreeKind kind) {
  std::vector<std::string> names;
  const auto add = [&](const std::string& tree) { names.push_back(flags.method + ":tree=" + tree); };
  for (int nodes = 1; nodes <= flags.max_nodes; ++nodes) {
    add("chain-" + std::to_string(nodes));
    if (kind != TreeKind::fan) continue;
    // Each needs so many nodes more than the chain of its length.
    for (const auto& [fan, more] : {std::pair{"fan-2-1-", 1}, {"fan-3-1-", 2}, {"fan-2-2-", 4}}) {
      if (nodes - more >= 2) add(fan + std::to_string(nodes - more));
    }
  }
  return bench_methods(names);
}

Json about(const TuneFlags& flags, const TextToImage& engine, const Manifest& manifest,
           const std::vector<BenchReport>& reports, const BenchReport& best, std::size_t pictures) {
  Json all = Json::array();
  for (const BenchReport& report : reports)
    all.push_back({{"method", report.method},
                   {"acceptance_length", to_json(report.acceptance_length)},
                   {"speedup", to_json(report.speedup)}});
  return {{"made_by", std::string("lamplighter ") + kVersion + " tune-tree"},
          {"model", manifest.name},
          {"device", engine.device()},
          {"dtype", engine.dtype()},
          {"threads", flags.model.runtime.threads},
          {"method", flags.method},
          {"pictures", pictures},
          {"acceptance_length", to_json(best.acceptance_length)},
          {"speedup", to_json(best.speedup)},
          {"windows", std::move(all)}};
}

}  // namespace

Tuned tune_window(const TuneFlags& flags, const Manifest& manifest, const std::vector<Request>& requests,
                  Terminal& terminal) {
  BenchOptions options;
  options.methods = windows(flags, find_method(parse_method(flags.method).method).tree);
  options.requests = requests;
  options.repeats = requests.size() == 1 ? 5 : 1;
  TextToImage engine(manifest.directory, flags.model.options());
  const OrderlyStop orderly;
  const auto goes_on = [](const auto&...) { return stop_signal() == 0; };
  const auto total = static_cast<std::int64_t>(options.methods.size() * requests.size()) * options.repeats;
  std::int64_t done = 0;
  const auto drawn = [&](const BenchSample&, const Result&) {
    terminal.progress(++done, total);
    return stop_signal() == 0;
  };
  const std::vector<BenchReport> all = report(run_bench(engine, options, drawn, goes_on));
  const auto slower = [](const BenchReport& a, const BenchReport& b) {
    return a.speedup.mean < b.speedup.mean;
  };
  // The first one is ar.
  const auto best = std::max_element(all.begin() + 1, all.end(), slower);
  const std::string& tree = options.methods[static_cast<std::size_t>(best - all.begin())].options.tree;
  return {preset_tree(tree), about(flags, engine, manifest, all, *best, requests.size()), best->speedup,
          "window " + tree + ": " + with_interval(best->acceptance_length) + " tokens a cycle, " +
              with_interval(best->speedup) + " times as fast as ar [95 %], from " +
              std::to_string(requests.size()) + " pictures"};
}

}  // namespace lamplighter::cli

#include "bench/pass.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/format.h"
#include "draft/options/resolve.h"
#include "draft/registry.h"
#include "draft/rows/zipar_plan.h"
#include "tree/tree.h"

namespace lamplighter {
namespace {

constexpr double kSmallShare = 0.5;   // least share of S that should become speed-up
constexpr double kFewAccepted = 0.5;  // drafted tokens per cycle

std::string number(double value, int digits = 2) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

// Sets nodes and depth of a method's tree, or the most parallel rows of an image in a pass.
void set_tree(const MethodOptions& resolved, const Grid& grid, PassCost& pass) {
  if (find_method(resolved.method).is_row_parallel())
    pass.nodes = plan_zipar(grid.rows, grid.columns, resolved.ahead.value_or(0)).widest();
  if (resolved.gamma) {  // continuous drafts and the token after them
    pass.nodes = *resolved.gamma + 1;
    pass.depth = *resolved.gamma;
  }
  if (resolved.tree.empty()) return;
  if (resolved.tree == kDynamicTree) {
    pass.nodes = resolved.dynamic_nodes.value_or(0) + 1;
    pass.depth = resolved.dynamic_depth.value_or(0) + 1;
    return;
  }
  const Tree tree = load_tree(resolved.tree);
  pass.nodes = find_method(resolved.method).is_row_parallel() ? pass.nodes * tree.size() : tree.size();
  pass.depth = tree.max_depth();
}

void compare(const BenchReport& baseline, PassCost& pass) {
  const PassCost& step = baseline.pass;
  if (pass.score_ms <= 0 || step.score_ms <= 0) return;
  pass.over_step = pass.score_ms / step.score_ms;
  const double rows = static_cast<double>(pass.rows) / static_cast<double>(step.rows);
  if (rows > 1) pass.growth = std::log(pass.over_step) / std::log(rows);
}

const BenchReport* baseline_of(const std::vector<BenchReport>& reports, std::size_t batch_size) {
  const auto found = std::find_if(reports.begin(), reports.end(), [&](const BenchReport& one) {
    return one.method == kBaseline && one.batch_size == batch_size;
  });
  return found == reports.end() ? nullptr : &*found;
}

// A part of a cycle's cost and the same part of an ar step.
struct Part {
  const char* name;
  double cost, step;
  double excess() const { return cost - step; }
};

std::string bound_words(const PassCost& pass, const PassCost& step) {
  const std::string times = "its " + counted(pass.rows, "row") + " take " + number(pass.over_step) +
                            " times as long as the " + counted(step.rows, "row") + " of ar, ";
  if (pass.is_arithmetic()) return times + "bound by arithmetic: more rows are not free here";
  return times + "bound by the " + number(pass.weight_bytes / 1e6, 0) + " MB of weights that it reads";
}

std::string cause(const BenchReport& report, const BenchReport& baseline) {
  const double accepted = report.acceptance_length.mean - 1;
  if (accepted < kFewAccepted) {
    return "few drafted tokens are accepted: " + number(accepted) + " per cycle, of drafts to depth " +
           std::to_string(report.pass.depth);
  }
  if (report.score_ms <= 0) return "";  // stages were not timed
  const Part parts[] = {
      {"drafting", report.draft_ms, baseline.draft_ms},
      {"the wide pass", report.score_ms, baseline.score_ms},
      {"verification", report.verify_ms + report.commit_ms, baseline.verify_ms + baseline.commit_ms}};
  const Part& most = *std::max_element(std::begin(parts), std::end(parts),
                                       [](const Part& a, const Part& b) { return a.excess() < b.excess(); });
  std::string text = std::string(most.name) + " takes most of the gain";
  if (&most == &parts[1]) text += ": " + bound_words(report.pass, baseline.pass);
  return text;
}

bool is_slower(const Interval& speedup) {
  return (speedup.count > 1 ? speedup.high : speedup.mean) < 1;
}

}  // namespace

PassFacts pass_facts(const Manifest& manifest, const std::string& dtype, const Grid& grid, bool guided) {
  const ModuleEntry& target = manifest.modules.at("target");
  const auto bytes = [](const std::string& name) {
    return name == "fp32" || name == "float32" ? 4.0 : name == "int8" ? 1.0 : name == "int4" ? 17.0 / 32 : 2;
  };
  const auto stored = static_cast<double>(manifest.files.at(target.file).bytes);
  // A pass reads only a few rows of the embeddings; quantized modules store them in 16 bits.
  const auto embedded = static_cast<double>(manifest.tokens.vocabulary * manifest.target.hidden);
  const double rest = stored - embedded * std::max(2.0, bytes(target.dtype));
  return {std::max(0.0, rest) / bytes(target.dtype), bytes(dtype), guided, grid};
}

void add_pass_costs(std::vector<BenchReport>& reports, const std::vector<BenchMethod>& resolved,
                    const PassFacts& facts) {
  for (BenchReport& report : reports) {
    PassCost& pass = report.pass;
    for (const BenchMethod& method : resolved) {
      if (method.name == report.method) set_tree(method.options, facts.grid, pass);
    }
    pass.rows = pass.nodes * static_cast<std::int64_t>(report.batch_size) * (facts.guided ? 2 : 1);
    pass.weight_bytes = facts.weights * facts.bytes_each;
    pass.multiplications = facts.weights * static_cast<double>(pass.rows);
    pass.score_ms = report.score_ms;
  }
  for (BenchReport& report : reports) {
    const BenchReport* const baseline = baseline_of(reports, report.batch_size);
    if (baseline == nullptr) continue;
    compare(*baseline, report.pass);
    if (report.method != kBaseline) report.verdict = verdict(report, *baseline);
  }
}

std::string verdict(const BenchReport& report, const BenchReport& baseline) {
  if (report.speedup.count == 0 || baseline.cycle_ms <= 0) return "";
  const bool slower = is_slower(report.speedup);
  if (!slower && report.share_kept.value_or(1) >= kSmallShare) return "";
  const double step = baseline.cycle_ms;
  std::string text = report.method + " at batch size " + std::to_string(report.batch_size) +
                     (slower ? " does not pay off" : " gains less speed than S suggests") + ": " +
                     number(report.speedup.mean) + " times as fast as ar at S " +
                     number(report.step_compression.mean) + ", because a cycle gives " +
                     number(report.acceptance_length.mean) + " tokens and costs " +
                     number(report.cycle_ms / step) + " steps of ar";
  if (report.score_ms > 0) {
    text += " (drafting " + number(report.draft_ms / step) + ", the pass " + number(report.score_ms / step) +
            ", verification and commit " + number((report.verify_ms + report.commit_ms) / step) + ")";
  }
  const std::string why = cause(report, baseline);
  return why.empty() ? text : text + "; " + why;
}

}  // namespace lamplighter

#include "tools/bench_report.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/memory.h"
#include "bench/machine/published.h"
#include "bench/report/json.h"
#include "tools/terminal.h"

namespace lamplighter::cli {

std::string with_interval(const Interval& interval) {
  if (interval.count == 0) return "-";
  const std::string mean = format_fixed(interval.mean, 2);
  if (interval.count == 1) return mean;
  return mean + " [" + format_fixed(interval.low, 2) + ", " + format_fixed(interval.high, 2) + "]";
}

std::string times_as_fast_as_ar(const Interval& speedup) {
  const std::string words = format_fixed(speedup.mean, 2) + " times as fast as ar";
  if (speedup.count <= 1) return words;
  return words + " [" + format_fixed(speedup.low, 2) + ", " + format_fixed(speedup.high, 2) + ": 95 %]";
}

namespace {

std::string stages(const StageTimes& times) {
  if (times.score <= 0) return "-";  // stages were not timed
  std::string text;
  for (const double ms : {times.draft, times.score, times.verify, times.commit})
    text += (text.empty() ? "" : " + ") + format_fixed(ms, 2);
  return text;
}

std::string share(const std::optional<double>& value) {
  return value ? format_fixed(100 * *value, 0) + " %" : "-";
}

// Prints how often each depth was reached, and by which child where nodes have siblings: "0.60 (0.50 0.10)".
std::string reached(const BenchReport& report) {
  std::string text;
  for (std::size_t d = 0; d < report.reached.size(); ++d) {
    text += (d == 0 ? "" : ", ") + format_fixed(report.reached[d], 2);
    if (d >= report.ranks.size() || report.ranks[d].size() < 2) continue;
    std::string children;
    for (const double rank : report.ranks[d])
      children += (children.empty() ? "" : " ") + format_fixed(rank, 2);
    text += " (" + children + ")";
  }
  return text.empty() ? "-" : text;
}

std::string tree_of(const BenchRun& run, const std::string& name) {
  for (const BenchMethod& method : run.methods) {
    if (method.name == name && !method.options.tree.empty()) return tree_name(method.options);
  }
  return "-";
}

// States what the intervals of speed-ups are taken over, which is the same for all methods of a batch size.
std::string about_interval(const BenchRun& run) {
  std::string counts;
  std::size_t least = kLeastResampled;
  for (const std::size_t size : run.batch_sizes) {
    for (const BenchReport& report : run.reports) {
      if (report.method == kBaseline || report.batch_size != size) continue;
      const std::size_t count = report.speedup.count;
      const bool repeats = count_batches(run.images, size) == 1;
      counts += (counts.empty() ? "" : "; ") + std::to_string(count) +
                (repeats ? " repeats of one batch (noise of the machine, not of images)" : " batches") +
                " of " + std::to_string(size);
      least = std::min(least, count);
      break;
    }
  }
  if (counts.empty()) return "";  // only ar ran
  const char* const remark = least < 2 ? "; one sample has no interval: give more images or --repeats"
                             : least < kLeastResampled ? "; fewer than five by Student's t"
                                                       : "";
  return "speed-ups over ar: prefill and decode, paired, 95 % interval by bootstrap over " + counts + remark;
}

std::string padded(const std::string& text, std::size_t width, bool left) {
  const std::string gap(width > text.size() ? width - text.size() : 0, ' ');
  return left ? text + gap : gap + text;
}

std::string joined(const std::vector<std::string>& cells, const std::string& between) {
  std::string text;
  for (std::size_t i = 0; i < cells.size(); ++i) text += (i == 0 ? "" : between) + cells[i];
  return text;
}

}  // namespace

std::vector<std::string> Table::lines() const {
  std::vector<std::size_t> widths;
  for (const std::string& name : head) widths.push_back(name.size());
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  const auto line = [&](const std::vector<std::string>& row) {
    std::vector<std::string> cells;
    for (std::size_t i = 0; i < row.size(); ++i) cells.push_back(padded(row[i], widths[i], i == 0));
    return joined(cells, "  ");
  };
  std::vector<std::string> all{line(head)};
  for (const auto& row : rows) all.push_back(line(row));
  return all;
}

std::string Table::markdown() const {
  std::string text = "| " + joined(head, " | ") + " |\n|";
  for (std::size_t i = 0; i < head.size(); ++i) text += "---|";
  text += "\n";
  for (const auto& row : rows) text += "| " + joined(row, " | ") + " |\n";
  return text;
}

std::vector<Table> tables(const BenchRun& run) {
  Table gains{{"method", "tree", "batch", "tau", "S", "speed-up [95 %]", "S kept", "latency ms", "p90", "p99",
               "ms/token", "tokens/s", "images/s"},
              {}};
  Table cycles{{"method", "batch", "ms/cycle", "draft + score + verify + commit",
                "reached depth 1, 2, ... (by child)"},
               {}};
  Table costs{{"method", "batch", "rows", "pass / ar's", "text ms", "prefill ms", "image ms", "memory"}, {}};
  const bool energy = std::any_of(run.reports.begin(), run.reports.end(),
                                  [](const BenchReport& r) { return r.joules_per_image.has_value(); });
  if (energy) costs.head.emplace_back("J/image");
  for (const BenchReport& r : run.reports) {
    const std::string batch = std::to_string(r.batch_size);
    gains.rows.push_back({r.method, tree_of(run, r.method), batch, format_fixed(r.acceptance_length.mean, 2),
                          format_fixed(r.step_compression.mean, 2), with_interval(r.speedup),
                          share(r.share_kept), format_fixed(r.latency_ms.p50, 1),
                          format_fixed(r.latency_ms.p90, 1), format_fixed(r.latency_ms.p99, 1),
                          format_fixed(r.token_ms.p50, 3), format_fixed(r.tokens_per_second.p50, 0),
                          format_fixed(r.images_per_second.p50, 2)});
    cycles.rows.push_back({r.method, batch, format_fixed(r.cycle_ms, 3),
                           stages({r.draft_ms, r.score_ms, r.verify_ms, r.commit_ms}), reached(r)});
    costs.rows.push_back({r.method, batch, std::to_string(r.pass.rows),
                          r.pass.over_step > 0 ? format_fixed(r.pass.over_step, 2) : "-",
                          format_fixed(r.text_ms.p50, 1), format_fixed(r.prefill_ms.p50, 1),
                          format_fixed(r.image_ms.p50, 1), r.peak_bytes ? format_bytes(*r.peak_bytes) : "-"});
    if (energy) costs.rows.back().push_back(r.joules_per_image ? format_fixed(*r.joules_per_image, 2) : "-");
  }
  return {gains, cycles, costs};
}

std::vector<Table> tables(const SyntheticReport& report) {
  Table table{{"method (synthetic)", "batch", "rows", "drafter passes", "accepted (scripted)", "ms/cycle",
               "cycle / ar step [95 %]", "draft + score + verify + commit", "decode ms", "images/s",
               "weights + cache MB", "GB/s"},
              {}};
  const bool floor = report.bandwidth > 0;
  const bool projected = floor && report.bandwidth_is_published && report.bandwidth > kA100Bandwidth;
  const bool captured = !report.rows.empty() && report.rows.front().kernels > 0;
  if (captured) table.head.push_back("kernels");
  if (floor) table.head.insert(table.head.end(), {"floor ms", "x floor"});
  if (projected) table.head.push_back("A100 ms (projected by bytes)");
  for (const SyntheticRow& row : report.rows) {
    table.rows.push_back(
        {row.name, std::to_string(row.batch_size), std::to_string(row.rows),
         std::to_string(row.drafter_passes), format_fixed(row.accepted, 2), format_fixed(row.cycle_ms, 2),
         with_interval(row.ratio), stages(row.stages), format_fixed(row.decode_ms, 0),
         format_fixed(row.images_per_second(), 2),
         format_fixed(row.weight_bytes / 1e6, 0) + " + " + format_fixed(row.cache_bytes / 1e6, 0),
         format_fixed(row.bytes() / row.cycle_ms / 1e6, 1)});
    std::vector<std::string>& cells = table.rows.back();
    if (captured) cells.push_back(std::to_string(row.kernels));
    if (floor) {
      cells.push_back(format_fixed(report.floor_ms(row), 3));
      cells.push_back(format_fixed(row.cycle_ms / report.floor_ms(row), 2));
    }
    if (projected) cells.push_back(format_fixed(row.cycle_ms * report.bandwidth / kA100Bandwidth, 2));
  }
  return {table};
}

std::vector<std::string> heading(const BenchRun& run) {
  std::string sizes;
  for (const std::size_t size : run.batch_sizes) sizes += (sizes.empty() ? "" : ", ") + std::to_string(size);
  std::vector<std::string> lines;
  lines.push_back("bundle " + run.model + " on " + run.device + " in " + run.dtype +
                  (run.cache_dtype == "int8" ? ", caches in int8" : "") +
                  ", images: " + std::to_string(run.images) + ", together: " + sizes +
                  ", repeats: " + std::to_string(run.repeats) + ", warm-up: " + std::to_string(run.warmup) +
                  "; S: tokens per target pass, the prompt's pass " +
                  (run.count_prompt ? "counted" : "left out (--count-prompt no)") +
                  "; latency: prefill and decode of a batch");
  const std::string intervals = about_interval(run);
  if (!intervals.empty()) lines.push_back(intervals);
  for (std::string& line : heading(run.environment)) lines.push_back(std::move(line));
  return lines;
}

std::vector<std::string> heading(const Environment& environment) {
  std::vector<std::string> lines{environment.words()};
  const std::string warning = environment.warning();
  if (!warning.empty()) lines.push_back("warning: " + warning);
  return lines;
}

std::vector<std::string> verdicts(const BenchRun& run) {
  std::vector<std::string> lines;
  for (const BenchReport& report : run.reports) {
    if (!report.verdict.empty()) lines.push_back(report.verdict);
  }
  return lines;
}

}  // namespace lamplighter::cli

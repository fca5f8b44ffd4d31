#include "bench_report.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "devices.h"
#include "terminal.h"

namespace lamplighter::cli {
namespace {

std::string with_interval(const Interval& interval) {
  if (interval.count == 0) return "-";
  const std::string mean = format_fixed(interval.mean, 2);
  if (interval.count == 1) return mean;
  return mean + " [" + format_fixed(interval.low, 2) + ", " + format_fixed(interval.high, 2) + "]";
}

std::string stages(const StageTimes& times) {
  if (times.score <= 0) return "-";  // not timed one by one
  std::string text;
  for (const double ms : {times.draft, times.score, times.judge, times.commit})
    text += (text.empty() ? "" : " + ") + format_fixed(ms, 2);
  return text;
}

// A file's name stands for it; the rest of the path tells nothing.
std::string tree_of(const MethodOptions& options) {
  return options.tree.empty() ? "-" : std::filesystem::path(options.tree).filename().string();
}

std::string shares(const std::vector<double>& values) {
  std::string text;
  for (const double value : values) text += (text.empty() ? "" : " ") + format_fixed(value, 2);
  return text.empty() ? "-" : text;
}

Json to_json(const Summary& s) {
  return {{"mean", s.mean}, {"min", s.min}, {"p10", s.p10}, {"p50", s.p50}, {"p90", s.p90}, {"max", s.max}};
}

Json to_json(const Interval& interval) {
  const bool ends = interval.count > 1;
  return {{"mean", interval.mean},
          {"low", ends ? Json(interval.low) : Json()},
          {"high", ends ? Json(interval.high) : Json()},
          {"count", interval.count}};
}

Json to_json(const StageTimes& times) {
  return {{"draft", times.draft}, {"score", times.score}, {"judge", times.judge}, {"commit", times.commit}};
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

std::vector<Table> tables(const std::vector<BenchReport>& reports, const std::vector<BenchMethod>& used) {
  Table gains{{"method", "tree", "tokens/pass", "speed-up [95 %]", "ms/token", "tokens/s", "prefill ms",
               "decode ms", "image ms"},
              {}};
  Table cycles{
      {"method", "ms/cycle", "draft + score + judge + commit", "tokens/cycle", "reached depth 1, 2, ..."},
      {}};
  for (const BenchReport& r : reports) {
    const auto method =
        std::find_if(used.begin(), used.end(), [&](const BenchMethod& one) { return one.name == r.method; });
    gains.rows.push_back({r.method, method == used.end() ? "-" : tree_of(method->options),
                          format_fixed(r.tokens_per_pass, 2), with_interval(r.speedup),
                          format_fixed(r.token_ms.p50, 3), format_fixed(r.tokens_per_second.p50, 0),
                          format_fixed(r.prefill_ms.p50, 1), format_fixed(r.decode_ms.p50, 1),
                          format_fixed(r.image_ms.p50, 1)});
    cycles.rows.push_back({r.method, format_fixed(r.cycle_ms, 3),
                           stages({r.draft_ms, r.score_ms, r.judge_ms, r.commit_ms}),
                           format_fixed(r.acceptance_length, 2), shares(r.reached)});
  }
  return {gains, cycles};
}

std::vector<Table> tables(const SyntheticReport& report) {
  Table table{{"tree (synthetic)", "rows", "drafter passes", "accepted (scripted)", "ms/cycle",
               "cycle / ar step [95 %]", "draft + score + judge + commit", "weights + cache MB", "GB/s"},
              {}};
  const bool floor = report.bandwidth > 0;
  const bool projected = floor && report.bandwidth_is_published && report.bandwidth > kA100Bandwidth;
  const bool captured = !report.rows.empty() && report.rows.front().kernels > 0;
  if (captured) table.head.push_back("kernels");
  if (floor) table.head.insert(table.head.end(), {"floor ms", "x floor"});
  if (projected) table.head.push_back("A100 ms (projected by bytes)");
  for (const SyntheticRow& row : report.rows) {
    table.rows.push_back(
        {row.name, std::to_string(row.rows), std::to_string(row.drafter_passes),
         format_fixed(row.accepted, 2), format_fixed(row.cycle_ms, 2), with_interval(row.ratio),
         stages(row.stages),
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

Json to_json(const BenchReport& r) {
  return {{"method", r.method},
          {"samples", r.samples},
          {"tokens_per_second", to_json(r.tokens_per_second)},
          {"token_ms", to_json(r.token_ms)},
          {"text_ms", to_json(r.text_ms)},
          {"prefill_ms", to_json(r.prefill_ms)},
          {"decode_ms", to_json(r.decode_ms)},
          {"image_ms", to_json(r.image_ms)},
          {"tokens_per_pass", r.tokens_per_pass},
          {"acceptance_length", r.acceptance_length},
          {"reached_depth", r.reached},
          {"cycle_ms", r.cycle_ms},
          {"stage_ms", to_json(StageTimes{r.draft_ms, r.score_ms, r.judge_ms, r.commit_ms})},
          {"speedup", to_json(r.speedup)}};
}

Json to_json(const BenchSample& s) {
  const Statistics& t = s.statistics;
  return {{"method", s.method},
          {"repeat", s.repeat},
          {"batch", s.batch},
          {"seed", s.seed},
          {"tokens", t.tokens},
          {"pictures", t.batch},
          {"target_passes", t.target_passes},
          {"text_ms", t.text_ms},
          {"prefill_ms", t.prefill_ms},
          {"decode_ms", t.decode_ms},
          {"image_ms", t.image_ms},
          {"stage_ms", to_json(StageTimes{t.draft_ms, t.score_ms, t.judge_ms, t.commit_ms})},
          {"drafted", t.drafted},
          {"accepted", t.accepted},
          {"reached", t.reached}};
}

Json to_json(const SyntheticReport& report) {
  Json rows = Json::array();
  for (const SyntheticRow& row : report.rows) {
    Json rounds = Json::array();
    for (const StageTimes& times : row.rounds) rounds.push_back(to_json(times));
    rows.push_back({{"method", row.name},
                    {"rows", row.rows},
                    {"drafter_passes", row.drafter_passes},
                    {"accepted_scripted", row.accepted},
                    {"cycle_ms", row.cycle_ms},
                    {"ratio", to_json(row.ratio)},
                    {"stage_ms", to_json(row.stages)},
                    {"kernels", row.kernels > 0 ? Json(row.kernels) : Json()},
                    {"weight_bytes", row.weight_bytes},
                    {"cache_bytes", row.cache_bytes},
                    {"bytes_per_second", 1000 * row.bytes() / row.cycle_ms},
                    {"floor_ms", report.bandwidth > 0 ? Json(report.floor_ms(row)) : Json()},
                    {"rounds", std::move(rounds)}});
  }
  return {{"synthetic", true},
          {"acceptance", "scripted"},
          {"target_bytes", report.target_bytes},
          {"drafter_bytes", report.drafter_bytes},
          {"context", report.context},
          {"peak_bytes", report.peak_bytes},
          {"bandwidth_bytes_per_second", report.bandwidth > 0 ? Json(1000 * report.bandwidth) : Json()},
          {"bandwidth_is_published", report.bandwidth_is_published},
          {"methods", std::move(rows)}};
}

std::string about_interval(const std::vector<BenchReport>& reports, std::size_t batches) {
  if (reports.size() < 2) return "";
  const std::size_t count = reports.back().speedup.count;
  if (count < 2) return "speed-ups over ar from one sample have no interval; give more pictures or --repeats";
  return "speed-ups over ar: prefill and decode, paired, 95 % interval over " + std::to_string(count) +
         (batches > 1 ? " batches of pictures"
                      : " repeats of one batch: noise of the machine, not of pictures");
}

}  // namespace lamplighter::cli

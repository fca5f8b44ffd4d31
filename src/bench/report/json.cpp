#include "bench/report/json.h"

#include <filesystem>

#include "base/utf8.h"
#include "draft/auto.h"
#include "draft/options/options.h"
#include "lamplighter/version.h"
#include "tree/tree.h"

namespace lamplighter {
namespace {

constexpr int kFormatVersion = 1;

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

}  // namespace

std::string tree_name(const MethodOptions& options) {
  return std::filesystem::path(tree_name(options.tree)).filename().string();
}

Json to_json(const Summary& s) {
  return {{"mean", s.mean}, {"min", s.min}, {"p10", s.p10}, {"p50", s.p50},
          {"p90", s.p90},   {"p99", s.p99}, {"max", s.max}};
}

Json to_json(const Interval& interval) {
  const bool ends = interval.count > 1;
  return {{"mean", interval.mean},
          {"low", ends ? Json(interval.low) : Json()},
          {"high", ends ? Json(interval.high) : Json()},
          {"count", interval.count}};
}

Json to_json(const StageTimes& times) {
  return {{"draft", times.draft}, {"score", times.score}, {"verify", times.verify}, {"commit", times.commit}};
}

Json to_json(const Environment& e) {
  return {{"cpu", e.cpu},
          {"cpus", e.cpus},
          {"mhz", or_null(e.mhz)},
          {"max_mhz", or_null(e.max_mhz)},
          {"gpu", e.gpu},
          {"driver", e.driver},
          {"cuda", e.cuda},
          {"gpu_mhz", or_null(e.gpu_mhz)},
          {"gpu_max_mhz", or_null(e.gpu_max_mhz)},
          {"version", e.version},
          {"commit", e.commit},
          {"torch", e.torch},
          {"threads", e.threads},
          {"load_before", or_null(e.load_before)},
          {"others", or_null(e.others)},
          {"busy", e.is_busy()}};
}

Json to_json(const PassCost& pass) {
  const bool known = pass.score_ms > 0;
  const bool compared = known && pass.over_step > 0 && pass.nodes > 1;
  return {{"nodes", pass.nodes},
          {"depth", pass.depth},
          {"rows", pass.rows},
          {"weight_bytes", pass.weight_bytes},
          {"multiplications", pass.multiplications},
          {"score_ms", known ? Json(pass.score_ms) : Json()},
          {"over_step", known ? Json(pass.over_step) : Json()},
          {"growth", compared ? Json(pass.growth) : Json()},
          {"bound", compared ? Json(pass.is_arithmetic() ? "arithmetic" : "bytes") : Json()}};
}

Json to_json(const BenchReport& r) {
  return {{"method", r.method},
          {"batch_size", r.batch_size},
          {"samples", r.samples},
          {"latency_ms", to_json(r.latency_ms)},
          {"mean_latency_ms", to_json(r.mean_latency_ms)},
          {"images_per_second", to_json(r.images_per_second)},
          {"token_ms", to_json(r.token_ms)},
          {"tokens_per_second", to_json(r.tokens_per_second)},
          {"text_ms", to_json(r.text_ms)},
          {"prefill_ms", to_json(r.prefill_ms)},
          {"decode_ms", to_json(r.decode_ms)},
          {"image_ms", to_json(r.image_ms)},
          {"step_compression", to_json(r.step_compression)},
          {"acceptance_length", to_json(r.acceptance_length)},
          {"speedup", to_json(r.speedup)},
          {"share_kept", or_null(r.share_kept)},
          {"reached_depth", r.reached},
          {"reached_rank", r.ranks},
          {"cycle_ms", r.cycle_ms},
          {"stage_ms", to_json(StageTimes{r.draft_ms, r.score_ms, r.verify_ms, r.commit_ms})},
          {"peak_bytes", or_null(r.peak_bytes)},
          {"joules_per_image", or_null(r.joules_per_image)},
          {"pass", to_json(r.pass)},
          {"verdict", r.verdict}};
}

Json to_json(const BenchSample& s) {
  const Statistics& t = s.statistics;
  return {{"method", s.method},
          {"batch_size", s.batch_size},
          {"repeat", s.repeat},
          {"batch", s.batch},
          {"image", s.image},
          {"seed", s.seed},
          {"tokens", t.tokens},
          {"images", t.batch},
          {"target_passes", t.target_passes},
          {"text_ms", t.text_ms},
          {"prefill_ms", t.prefill_ms},
          {"decode_ms", t.decode_ms},
          {"image_ms", t.image_ms},
          {"stage_ms", to_json(StageTimes{t.draft_ms, t.score_ms, t.verify_ms, t.commit_ms})},
          {"drafted", t.drafted},
          {"accepted", t.accepted},
          {"reached", t.reached},
          {"peak_bytes", or_null(s.peak_bytes)},
          {"joules", or_null(s.joules)}};
}

Json to_json(const BenchRun& run) {
  Json reports = Json::array(), samples = Json::array();
  for (const BenchReport& one : run.reports) {
    Json row = to_json(one);
    for (const BenchMethod& method : run.methods) {
      if (method.name != one.method) continue;
      Json options{{"method", method.options.method}};
      write_options(method.options, options);
      const std::string tree = tree_name(method.options);
      row["options"] = std::move(options);
      row["tree"] = tree.empty() ? Json() : Json(encode_utf8(decode_utf8(tree)));
      row["lossless"] = is_lossless(method.options);
    }
    reports.push_back(std::move(row));
  }
  for (const BenchSample& sample : run.samples) samples.push_back(to_json(sample));
  return {{"format", "lamplighter-bench"},
          {"format_version", kFormatVersion},
          {"version", kVersion},
          {"model", run.model},
          {"checksum", run.checksum},
          {"device", run.device},
          {"dtype", run.dtype},
          {"cache_dtype", run.cache_dtype},
          {"threads", run.environment.threads},
          {"images", run.images},
          {"batch_sizes", run.batch_sizes},
          {"repeats", run.repeats},
          {"warmup", run.warmup},
          {"count_prompt", run.count_prompt},
          {"peak_bytes", run.peak_bytes},
          {"environment", to_json(run.environment)},
          {"methods", std::move(reports)},
          {"samples", std::move(samples)}};
}

Json to_json(const SyntheticReport& report) {
  Json rows = Json::array();
  for (const SyntheticRow& row : report.rows) {
    Json rounds = Json::array();
    for (const StageTimes& times : row.rounds) rounds.push_back(to_json(times));
    rows.push_back({{"method", row.name},
                    {"batch_size", row.batch_size},
                    {"rows", row.rows},
                    {"drafter_passes", row.drafter_passes},
                    {"accepted_scripted", row.accepted},
                    {"cycle_ms", row.cycle_ms},
                    {"ratio", to_json(row.ratio)},
                    {"decode_ms", row.decode_ms},
                    {"images_per_second", row.images_per_second()},
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

}  // namespace lamplighter

#pragma once

#include "base/json.h"
#include "bench/report/report.h"
#include "bench/synthetic_bench.h"

// The JSON of `bench --json` and --export-json. Units: milliseconds, bytes, joules. null: unknown.
namespace lamplighter {

Json to_json(const Summary& summary);    // mean, min, p10, p50, p90, p99, max
Json to_json(const Interval& interval);  // mean, low, high, count; low and high are null for one unit
Json to_json(const StageTimes& times);   // draft, score, verify, commit

// cpu, cpus, mhz, max_mhz, gpu, driver, cuda, gpu_mhz, gpu_max_mhz, version, commit, torch, threads,
// load_before, others, busy
Json to_json(const Environment& environment);

// nodes, depth, rows, weight_bytes, multiplications, score_ms, over_step, growth,
// bound: "bytes", "arithmetic" or null
Json to_json(const PassCost& pass);

// method, batch_size, samples;
// latency_ms, images_per_second, token_ms, tokens_per_second, text_ms, prefill_ms, decode_ms, image_ms:
// summaries; mean_latency_ms, step_compression, acceptance_length, speedup: intervals; share_kept;
// reached_depth [d], reached_rank [d][r]; cycle_ms, stage_ms; peak_bytes, joules_per_image; pass;
// verdict: a sentence or ""
Json to_json(const BenchReport& report);

// method, batch_size, repeat, batch, image, seed; tokens, images (generated together), target_passes,
// text_ms, prefill_ms, decode_ms, image_ms, stage_ms, drafted [d], accepted [d], reached [d][r],
// peak_bytes, joules
Json to_json(const BenchSample& sample);

// format "lamplighter-bench" and format_version; version, model, checksum, device, dtype, cache_dtype,
// threads, images, batch_sizes, repeats, warmup, count_prompt, peak_bytes, environment; methods: the reports,
// each also with `options` (the resolved method: its name as "method" and the fields of write_options),
// `tree` (short name or null) and `lossless` (whether it keeps the distribution of ar); samples
Json to_json(const BenchRun& run);

// synthetic true; acceptance "scripted"; methods: a row per tree, see SyntheticRow
Json to_json(const SyntheticReport& report);

// "chain-4" or a tree file's name without folders; "" when the method has no tree.
std::string tree_name(const MethodOptions& options);

}  // namespace lamplighter

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/bench.h"
#include "bench/machine/environment.h"
#include "measure/statistics.h"

// The results of `bench`: one report per method and batch size, and the machine and settings.
namespace lamplighter {

// A target pass over a draft tree and what bounds it. Unknown values are 0: captured cycles have no stage
// times.
struct PassCost {
  std::int64_t nodes = 1;      // of the tree, with the root
  std::int64_t depth = 0;      // of the tree
  std::int64_t rows = 1;       // positions in a pass: nodes x images, doubled by guidance
  double weight_bytes = 0;     // read once per pass
  double multiplications = 0;  // rows x weights, without attention
  double score_ms = 0;         // mean
  double over_step = 0;        // score_ms over ar's at the same batch size
  // Growth of pass time with positions, relative to ar: log(time ratio) / log(position ratio). Near 0 the
  // bytes of the weights bound the pass and positions are free; near 1 arithmetic does.
  double growth = 0;

  bool is_arithmetic() const { return growth > 0.5; }
};

// One method at one batch size. Times are in milliseconds.
struct BenchReport {
  std::string method;
  std::size_t batch_size = 1;
  std::size_t samples = 0;    // batches, with repeats
  Summary latency_ms;         // of a batch: prefill and decode, which is what methods change
  Interval mean_latency_ms;   // over batches
  Summary images_per_second;  // over prefill and decode
  Summary token_ms;           // decode time per token of an image, without prefill
  Summary tokens_per_second;  // image tokens per second of decode time, all images of a batch
  Summary text_ms, prefill_ms, decode_ms, image_ms;
  // Step compression S: tokens per target pass. The prompt's pass counts unless ReportOptions says otherwise.
  // Over images.
  Interval step_compression;
  Interval acceptance_length;   // acceptance length tau: tokens per cycle with the bonus token; over images
  std::vector<double> reached;  // [d]: share of cycles that accepted depth d + 1
  std::vector<std::vector<double>> ranks;  // [d][r]: share of cycles that accepted child r at depth d + 1
  double cycle_ms = 0;                     // mean
  double draft_ms = 0, score_ms = 0, verify_ms = 0, commit_ms = 0;  // its stages, when timed
  // Prefill and decode time of ar divided by the method's at the same batch size, paired by batch.
  // Repeats of a batch are averaged first, because they show noise of the machine and not of images; a single
  // batch uses its repeats. Count 0: ar was not run.
  Interval speedup;
  std::optional<double> share_kept;        // speedup / S
  std::optional<std::int64_t> peak_bytes;  // peak during generation
  std::optional<double> joules_per_image;  // of the whole machine
  PassCost pass;
  std::string verdict;  // why speculation does not pay off; empty when it does
};

struct ReportOptions {
  // false reproduces papers that exclude the prompt's pass and its token from S; S then equals the acceptance
  // length.
  bool count_prompt = true;
};

// One report per method and batch size, in order of first appearance. add_pass_costs sets `pass` and
// `verdict`.
std::vector<BenchReport> report(const std::vector<BenchSample>& samples, const ReportOptions& options = {});

// Settings and results of a run.
struct BenchRun {
  std::string model, checksum;  // of the bundle: name, and SHA-256 of its manifest, which names all files
  std::string device, dtype, cache_dtype;
  std::vector<BenchMethod> methods;  // resolved
  std::vector<std::size_t> batch_sizes;
  std::size_t images = 0;
  int repeats = 0, warmup = 0;
  bool count_prompt = true;
  std::int64_t peak_bytes = 0;  // peak during generation
  Environment environment;
  std::vector<BenchReport> reports;
  std::vector<BenchSample> samples;
};

}  // namespace lamplighter

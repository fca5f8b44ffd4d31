#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/bench.h"
#include "bench/machine/environment.h"
#include "bench/report/statistics.h"

// What a run of `bench` tells: one report per method and batch size, and where and how it was measured.
namespace lamplighter {

// A target pass over the rows of a draft tree, and what bounds it. 0 where it is not known: captured cycles
// have no stages.
struct PassCost {
  std::int64_t nodes = 1;      // of the tree, the root counted
  std::int64_t depth = 0;      // of the tree
  std::int64_t rows = 1;       // of a pass: nodes x pictures, both halves of guidance
  double weight_bytes = 0;     // read once a pass
  double multiplications = 0;  // rows x weights; attention left out
  double score_ms = 0;         // measured, mean
  double over_step = 0;        // score_ms over that of ar at the same batch size
  // Growth of a pass's time with its rows, against ar: log(time ratio) / log(row ratio). Near 0 the weights'
  // bytes bound it and rows are free; near 1 the arithmetic does and every row costs its own.
  double growth = 0;

  bool is_arithmetic() const { return growth > 0.5; }
};

// One method at one batch size. Times are milliseconds.
struct BenchReport {
  std::string method;
  std::size_t batch_size = 1;
  std::size_t samples = 0;      // batches drawn, repeats counted
  Summary latency_ms;           // of a batch: prefill and decode, what the method changes
  Interval mean_latency_ms;     // over batches
  Summary pictures_per_second;  // of that time
  Summary token_ms;             // decode milliseconds per token of a picture (prefill not counted)
  Summary tokens_per_second;    // image tokens per second of decode time, all pictures of the batch
  Summary text_ms, prefill_ms, decode_ms, image_ms;
  // Step compression S: tokens per target pass, the prompt's pass counted unless ReportOptions says
  // otherwise. Over pictures.
  Interval step_compression;
  Interval acceptance_length;              // tau: tokens per cycle, bonus token included. Over pictures.
  std::vector<double> reached;             // [d]: share of cycles whose path reached depth d + 1
  std::vector<std::vector<double>> ranks;  // [d][r]: share of cycles whose path took child r at depth d + 1
  double cycle_ms = 0;                     // mean per cycle
  double draft_ms = 0, score_ms = 0, judge_ms = 0, commit_ms = 0;  // its parts, where they are known
  // Time of ar over time of this method at the same batch size, prefill and decode, paired batch by batch.
  // Repeats of a batch are averaged first: they tell of the machine's noise, not of pictures. With one batch
  // the repeats are all there is. Count 0: ar was not drawn.
  Interval speedup;
  std::optional<double> share_kept;          // of S, as time: speedup / S
  std::optional<std::int64_t> peak_bytes;    // of memory while it drew
  std::optional<double> joules_per_picture;  // of the whole machine
  PassCost pass;
  std::string verdict;  // why speculation does not pay; empty where it does
};

struct ReportOptions {
  // Papers that leave the prompt's pass, and the token that it gives, out of S are reproduced by false: S is
  // the acceptance length then.
  bool count_prompt = true;
};

// One report per method and batch size, in the order of first appearance. `pass` and `verdict` are left to
// add_pass_costs.
std::vector<BenchReport> report(const std::vector<BenchSample>& samples, const ReportOptions& options = {});

// The pictures and settings of a run and all that came of it.
struct BenchRun {
  std::string model, checksum;  // of the bundle: its name, and SHA-256 of its manifest, which names all files
  std::string device, dtype, cache_dtype;
  std::vector<BenchMethod> methods;  // resolved
  std::vector<std::size_t> batch_sizes;
  std::size_t pictures = 0;
  int repeats = 0, warmup = 0;
  bool count_prompt = true;
  std::int64_t peak_bytes = 0;  // of memory while pictures were drawn
  Environment environment;
  std::vector<BenchReport> reports;
  std::vector<BenchSample> samples;
};

}  // namespace lamplighter

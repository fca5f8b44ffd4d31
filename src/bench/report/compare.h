#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "measure/statistics.h"

// Compares two files of `bench --export-json`.
namespace lamplighter {

// A quantity in both runs, with 95 % intervals over images or batches; for a single one, over its repeats.
struct Change {
  Interval before, after;
  // after / before. Paired by image when both runs generated the same images, which removes differences
  // between images from the noise.
  Interval ratio;
  bool paired = false;

  // Whether the interval of the ratio excludes 1. Without an interval it is false.
  bool is_beyond_noise() const;
};

// A method at one batch size.
struct MethodChange {
  std::string method;
  std::size_t batch_size = 1;
  Change step_compression;  // step compression S
  Change speedup;           // over ar of the same run; count 0: ar was not run
  Change token_ms;          // decode milliseconds per token
};

// Formats method and batch size like "eagle:tree=chain-4, 2 together".
std::string row_name(const std::string& method, std::size_t batch_size);

// A setting or fact of the machine that differs; null when a file lacks it.
struct Difference {
  std::string key;
  Json before, after;
};

struct Comparison {
  std::vector<MethodChange> methods;  // methods of both files, in the order of the first
  std::vector<std::string> only_before, only_after;
  std::vector<Difference> differences;
};

// Compares two parsed files; names are for messages. Throws Error(ExitCode::input) unless both come from
// `bench` on a bundle.
Comparison compare_runs(const Json& before, const std::string& before_name, const Json& after,
                        const std::string& after_name);

Json to_json(const Comparison& comparison);

}  // namespace lamplighter

#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "bench/report/statistics.h"

// What changed between two files of `bench --export-json`.
namespace lamplighter {

// A quantity in both runs, with 95 % intervals over pictures or batches; with one of them, over its repeats.
struct Change {
  Interval before, after;
  // after / before. Where both runs drew the same pictures it is taken picture by picture, so that their
  // differences are no noise.
  Interval ratio;
  bool paired = false;

  // The interval of the ratio leaves 1 out. Equal values without an interval are no change; others without
  // one are not known to be.
  bool is_beyond_noise() const;
};

// A method at one batch size.
struct MethodChange {
  std::string method;
  std::size_t batch_size = 1;
  Change step_compression;  // S
  Change speedup;           // over own ar; count 0: ar was not drawn
  Change token_ms;          // decode milliseconds a token
};

// A method with the pictures drawn together, as "eagle:tree=chain-4, 2 together".
std::string row_name(const std::string& method, std::size_t batch_size);

// A setting or fact of the machine, null where one file does not know it.
struct Difference {
  std::string key;
  Json before, after;
};

struct Comparison {
  std::vector<MethodChange> methods;  // of both files, in the order of the first
  std::vector<std::string> only_before, only_after;
  std::vector<Difference> differences;
};

// Compares what was parsed from the files; their names are for messages. Throws Error(ExitCode::input) unless
// both are of `bench` on a bundle.
Comparison compare_runs(const Json& before, const std::string& before_name, const Json& after,
                        const std::string& after_name);

Json to_json(const Comparison& comparison);

}  // namespace lamplighter

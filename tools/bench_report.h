#pragma once

#include <string>
#include <vector>

#include "bench/report/report.h"
#include "bench/synthetic_bench.h"

namespace lamplighter::cli {

struct Table {
  std::vector<std::string> head;
  std::vector<std::vector<std::string>> rows;

  std::vector<std::string> lines() const;  // aligned columns, the first one to the left
  std::string markdown() const;
};

// Prints an interval: "2.34 [2.31, 2.37]".
std::string with_interval(const Interval& interval);

// "2.34 times as fast as ar [2.31, 2.37: 95 %]"
std::string times_as_fast_as_ar(const Interval& speedup);

// Results by method.
std::vector<Table> tables(const BenchRun& run);
std::vector<Table> tables(const SyntheticReport& report);

// Lines above the tables: the images, the definitions of S and of intervals, the machine, and a warning if it
// was busy.
std::vector<std::string> heading(const BenchRun& run);
std::vector<std::string> heading(const Environment& environment);  // the machine and the warning alone
// One line for each method that is not faster than ar, with the reason.
std::vector<std::string> verdicts(const BenchRun& run);

}  // namespace lamplighter::cli

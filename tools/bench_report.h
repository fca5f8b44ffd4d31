#pragma once

#include <string>
#include <vector>

#include "bench/report/report.h"
#include "bench/synthetic_bench.h"

namespace lamplighter::cli {

// A table of text.
struct Table {
  std::vector<std::string> head;
  std::vector<std::vector<std::string>> rows;

  std::vector<std::string> lines() const;  // columns lined up, the first to the left
  std::string markdown() const;
};

// "2.34 [2.31, 2.37]".
std::string with_interval(const Interval& interval);

// What was measured, method by method.
std::vector<Table> tables(const BenchRun& run);
std::vector<Table> tables(const SyntheticReport& report);

// What stands above the tables, a line each: what was drawn and how S and intervals are meant, the machine,
// and a warning where it was busy.
std::vector<std::string> heading(const BenchRun& run);
std::vector<std::string> heading(const Environment& environment);  // its last lines
// Why methods do not pay, a line each.
std::vector<std::string> verdicts(const BenchRun& run);

}  // namespace lamplighter::cli

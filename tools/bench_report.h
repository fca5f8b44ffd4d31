#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "bench/bench.h"
#include "bench/synthetic_bench.h"

namespace lamplighter::cli {

// A table of text.
struct Table {
  std::vector<std::string> head;
  std::vector<std::vector<std::string>> rows;

  std::vector<std::string> lines() const;  // columns lined up, the first to the left
  std::string markdown() const;
};

// What was measured, method by method; `used` are the methods as resolved, in the order of the run.
std::vector<Table> tables(const std::vector<BenchReport>& reports, const std::vector<BenchMethod>& used);
std::vector<Table> tables(const SyntheticReport& report);

Json to_json(const BenchReport& report);
Json to_json(const BenchSample& sample);
Json to_json(const SyntheticReport& report);

// What the interval of a speed-up is taken over.
std::string about_interval(const std::vector<BenchReport>& reports, std::size_t batches);

}  // namespace lamplighter::cli

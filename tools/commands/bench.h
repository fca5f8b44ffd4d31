#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "batch/plan.h"
#include "bench/page/page.h"
#include "bench/sweep.h"
#include "measure/captions.h"
#include "tools/bench_report.h"
#include "tools/requests.h"
#include "tools/terminal.h"

namespace lamplighter::cli {

struct BenchFlags {
  ModelFlags model;
  JobFlags jobs;
  PlanOptions captions;
  LogFlags logging;
  std::vector<std::string> methods, trees, sweep;
  std::vector<int> batch_sizes{1};
  std::optional<int> repeats;
  int warmup = 1;
  std::optional<std::size_t> count;
  bool count_prompt = true;
  std::string synthetic, clock = "wall";
  std::optional<std::int64_t> layers;
  std::vector<double> accept;
  bool startup = false, json = false, overwrite = false, save_table = false;
  std::string export_json, export_csv, export_markdown, export_html;
  std::string export_svg;            // folder
  std::string scores, growth;        // files
  std::vector<std::string> compare;  // two files
  std::string command;               // as one types it, without outputs
};

// Results of a run: lines above and below the tables, and everything as JSON, whose `methods` are the rows of
// the CSV file.
struct BenchResults {
  std::vector<std::string> heading;
  std::vector<Table> tables;
  std::vector<std::string> remarks;
  Json json;
  std::vector<PageImage> images;  // sample images for --export-html and --export-svg
};

// Parses --sweep, with --tree as its first option.
Sweep sweep_of(const BenchFlags& flags);

// Both check all settings before they load weights. Throw Error.
BenchResults bench_bundle(const BenchFlags& flags, Terminal& terminal);
BenchResults bench_synthetic(const BenchFlags& flags, Terminal& terminal);

}  // namespace lamplighter::cli

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "bench/bench.h"
#include "device/placement.h"
#include "lamplighter/pipeline.h"
#include "measure/statistics.h"
#include "tools/flags.h"
#include "tools/requests.h"
#include "tools/terminal.h"
#include "tree/tree.h"

// Shared by the parts of the command tune-tree.
namespace lamplighter::cli {

struct TuneFlags {
  ModelFlags model;
  JobFlags jobs;
  LogFlags logging;
  std::string method = "eagle", bundle, output, clock = "wall";
  std::optional<std::size_t> count;
  int max_nodes = 8;
  std::optional<int> max_depth, rounds;
  std::optional<std::int64_t> ahead;
  bool json = false, overwrite = false, save_table = false;
};

struct Tuned {
  std::optional<Tree> tree;        // none: row-parallel decoding without windows
  Json about;                      // how it was found, for the file of the tree
  Interval speedup;                // over ar
  std::vector<std::string> lines;  // for standard output
  std::string words;
};

// Finds the tree with the most expected tokens per time, from the acceptance on the images and the cost of
// passes on this machine. `method` is resolved, with any tree.
Tuned tune_static_tree(const TuneFlags& flags, const Manifest& manifest, const Placement& placement,
                       const MethodOptions& method, const std::vector<Request>& requests, Terminal& terminal);

// Finds the candidate that generates the images fastest. All candidates generate all images, interleaved with
// ar, which comes first.
Tuned tune_by_generation(const TuneFlags& flags, const Manifest& manifest,
                         const std::vector<BenchMethod>& candidates, const std::vector<Request>& requests,
                         Terminal& terminal);

}  // namespace lamplighter::cli

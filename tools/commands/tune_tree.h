#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "bench/bench.h"
#include "bench/report/statistics.h"
#include "bundle/placement.h"
#include "lamplighter/pipeline.h"
#include "tools/flags.h"
#include "tools/requests.h"
#include "tools/terminal.h"
#include "tree/tree.h"

// What the parts of the command tune-tree share.
namespace lamplighter::cli {

struct TuneFlags {
  ModelFlags model;
  JobFlags jobs;
  TalkFlags talk;
  std::string method = "eagle", bundle, output, clock = "wall";
  std::optional<std::size_t> count;
  int max_nodes = 8;
  std::optional<int> max_depth, rounds;
  std::optional<std::int64_t> ahead;
  bool json = false, overwrite = false, save_table = false;
};

// What was found.
struct Tuned {
  std::optional<Tree> tree;        // none: rows side by side without windows
  Json about;                      // how, for the tree's file
  Interval speedup;                // time of ar over its time
  std::vector<std::string> lines;  // for people, on standard output
  std::string words;
};

// The tree with the best ratio of the tokens that are to be expected, by the acceptance of the pictures, and
// what passes cost on this machine. method: resolved, with any tree.
Tuned tune_static_tree(const TuneFlags& flags, const Manifest& manifest, const Placement& placement,
                       const MethodOptions& method, const std::vector<Request>& requests, Terminal& terminal);

// The candidate with which the pictures take the least time: all of them draw the pictures, in turn with ar,
// which comes first.
Tuned tune_by_drawing(const TuneFlags& flags, const Manifest& manifest,
                      const std::vector<BenchMethod>& candidates, const std::vector<Request>& requests,
                      Terminal& terminal);

}  // namespace lamplighter::cli

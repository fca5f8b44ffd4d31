#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "batch/captions/captions.h"
#include "batch/layout.h"
#include "batch/record.h"

namespace lamplighter {

// Which images a run generates.
struct PlanOptions {
  std::string captions;              // file; "-" = standard input
  std::string format = "auto";       // see read_captions
  std::string column;                // of the prompts; empty: found by name
  std::string select = "all";        // see select_captions
  std::size_t offset = 0;            // captions to skip
  std::optional<std::size_t> limit;  // captions at most, after the offset
  int repeats = 1;                   // images per caption
  std::uint64_t seed = 42;
  Request defaults;  // for values that captions leave open
  std::string layout = "flat";
  std::string name;              // pattern of image names; empty: the layout's
  bool is_further_seed = false;  // the folder has images of another seed: names contain the seed
};

// An image of a run: its request, and its record before generation.
struct PlannedImage {
  Request request;
  Record record;
  std::string where;  // for messages about the request
};

struct Plan {
  PlanOptions options;
  const Layout* layout = nullptr;
  std::size_t captions = 0;          // number of captions in `images`
  std::vector<PlannedImage> images;  // caption by caption
  std::vector<Record> others;        // images of the set's other captions, which this run does not generate
  std::string pattern;               // of image names
  bool names_seeds = false;          // whether they contain seeds
  std::string sha256;                // of the captions' content, independent of the file
};

// Image r of selected caption i gets seed + i x repeats + r, or the caption's own seed + r. Skipped captions
// count in i, so that parts of a set give the same images as the whole. Throws Error (usage, input) before
// anything is loaded; also for duplicate or invalid file names.
Plan make_plan(const PlanOptions& options);

// The file of an image below the folder, by its index, repeat, seed and ids.
std::string image_file(const Plan& plan, const Record& record);

}  // namespace lamplighter

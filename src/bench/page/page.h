#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "image/acceptance_map.h"

namespace lamplighter {

struct PageTable {
  std::vector<std::string> head;
  std::vector<std::vector<std::string>> rows;
};

// A picture of the run and where its tokens came together.
struct PagePicture {
  std::string caption, method;
  std::uint64_t seed = 0;
  double step_compression = 0;
  AcceptanceGrid grid;
};

// What the page of a run of `bench` shows.
struct BenchPage {
  std::string title;                 // what was measured
  std::vector<std::string> heading;  // lines above the tables
  std::vector<PageTable> tables;
  std::vector<std::string> remarks;   // lines below them
  Json report;                        // what --export-json writes
  Json scores;                        // see read_scores; null: none
  Json growth;                        // see read_growth; null: none
  std::vector<PagePicture> pictures;  // those of a caption follow each other
};

// One HTML page, in one text that needs no network. Headings, environment, tables and pictures stand in it;
// its figures are drawn by a script as SVG from `report`, `scores` and `growth`. Sections without data are
// left out. Equal input gives equal bytes.
std::string bench_page(const BenchPage& page);

// Scores of pictures by method: {"eagle:tree=chain-4": {"fid": 21.3, "clip": 0.31}}. Throws
// Error(ExitCode::input).
Json read_scores(const std::string& path);

// What scripts/growth.py writes: {"settings": {...}, "curves": {"picture": [...], "batch": [...], "tree":
// [...]}}, points {"method", "grid" or "pictures" or "tree", "S", "ms", "ms a pass", "MB"}. Throws
// Error(ExitCode::input).
Json read_growth(const std::string& path);

}  // namespace lamplighter

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

// An image of the run with its acceptance map.
struct PageImage {
  std::string caption, method;
  std::uint64_t seed = 0;
  double step_compression = 0;
  AcceptanceGrid grid;
};

// Content of the HTML page of `bench`.
struct BenchPage {
  std::string title;                 // what the run measured
  std::vector<std::string> heading;  // lines above the tables
  std::vector<PageTable> tables;
  std::vector<std::string> remarks;  // lines below them
  Json report;                       // what --export-json writes
  Json scores;                       // see read_scores; null: none
  Json growth;                       // see read_growth; null: none
  std::vector<PageImage> images;     // grouped by caption
};

// Builds a self-contained HTML page. Headings, environment, tables and images are static; a script draws the
// figures as SVG from `report`, `scores` and `growth`. Sections without data are omitted. Equal input gives
// equal bytes.
std::string bench_page(const BenchPage& page);

// Reads image scores by method: {"eagle:tree=chain-4": {"fid": 21.3, "clip": 0.31}}. Throws
// Error(ExitCode::input).
Json read_scores(const std::string& path);

// Reads results of scripts/growth.py: {"settings": {...}, "curves": {"image": [...], "batch": [...], "tree":
// [...]}}, points {"method", "grid" or "images" or "tree", "S", "ms", "ms a pass", "MB"}. Throws
// Error(ExitCode::input).
Json read_growth(const std::string& path);

}  // namespace lamplighter

#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "bench/page/page.h"
#include "image/figure.h"

// The figures of `bench --export-svg`, for documents: each is an SVG and a PDF file.
namespace lamplighter {

struct BenchFigure {
  std::string name;  // of the files, without their endings
  Figure figure;
};

// The figures for which the report has numbers:
//   speedup         bars: times as fast as ar, with intervals; the line is ar
//   compression     bars: step compression S, with intervals
//   stages          bars: milliseconds per cycle, and of its stages where they were timed
//   acceptance-map  the images, beside their tokens in the colours of acceptance_map
// `report` is what --export-json writes, `subtitle` what was measured, `footer` lines of settings. Equal
// input gives equal bytes.
std::vector<BenchFigure> bench_figures(const Json& report, const std::vector<PageImage>& images,
                                       const std::string& subtitle, const std::string& footer);

// The files that write_figures may write into a folder.
std::vector<std::string> figure_paths(const std::string& folder);

// Writes NAME.svg and NAME.pdf of every figure; creates the folder. Without `overwrite` files that exist
// stay. Throws Error(ExitCode::output).
void write_figures(const std::string& folder, const std::vector<BenchFigure>& figures, bool overwrite);

}  // namespace lamplighter

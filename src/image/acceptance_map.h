#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "image/acceptance_legend.h"
#include "image/figure.h"
#include "lamplighter/pipeline.h"

namespace lamplighter {

// An image and, for every token of its grid, how many tokens its cycle committed.
struct AcceptanceGrid {
  Image image;
  int rows = 0, columns = 0;
  std::vector<std::int64_t> committed;   // [rows * columns], raster order, 1 or more
  std::vector<std::int64_t> order = {};  // cells in the order of generation; empty: raster order
  std::string label = {};                // below the pair in an acceptance map
  std::int64_t first = 1;                // cells that the first pass made known, given ones counted
};

// The grid of an image. The prefill commits one token; kept tokens count as that. The smaller image in front
// of some images is left out, its tokens in a cycle that begins there count.
AcceptanceGrid acceptance_grid(const Result& result);

// A contact sheet of images beside their grids. Cells are coloured up to the largest number of the set; below
// stand a bar with one numbered field per number and a caption, which is wrapped at the width of the sheet.
// columns: of pairs; 0: nearly as many as rows. Throws Error(usage) when there is no image or a grid does not
// match its cells.
Figure acceptance_figure(const std::vector<AcceptanceGrid>& grids, const std::string& caption = "",
                         Typeface typeface = Typeface::dots, int columns = 0);

// Shows every image, one per row, at six steps of its generation, evenly spaced in target passes, above the
// grid of the tokens known by then. Partial images are cut out of the finished one. Throws like
// acceptance_figure.
Figure growth_figure(const std::vector<AcceptanceGrid>& grids, const std::string& caption = "",
                     Typeface typeface = Typeface::dots);

// The same as pixels.
Image acceptance_map(const std::vector<AcceptanceGrid>& grids, const std::string& caption = "");
Image growth_strips(const std::vector<AcceptanceGrid>& grids, const std::string& caption = "");

// Sizes of both for `count` images of one size, with a caption of one line.
Extent acceptance_map_extent(std::int64_t count, const Extent& image);
Extent growth_strips_extent(std::int64_t count, const Extent& image);

}  // namespace lamplighter

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "image/canvas.h"
#include "lamplighter/pipeline.h"

namespace lamplighter {

// A picture and, for every cell of its grid of tokens, how many tokens the cycle committed that made it.
struct AcceptanceGrid {
  Image picture;
  int rows = 0, columns = 0;
  std::vector<std::int64_t> committed;   // [rows * columns], raster order, 1 or more
  std::vector<std::int64_t> order = {};  // the cells as they were made; empty: raster order
};

// For every token how many its cycle committed. The prefill commits the first one alone.
std::vector<std::int64_t> committed_with(const Statistics& statistics, std::size_t tokens);

// Colour of a cell, from dark (1) to bright (`most`); 1 <= committed <= most.
Colour acceptance_colour(std::int64_t committed, std::int64_t most);

// Every picture beside its grid, its cells coloured up to the largest number of the set, on a contact sheet;
// below it a bar with one numbered field per number of tokens, and a line of words. Throws Error(usage) when
// there is no picture or a grid does not fit its cells.
Image acceptance_map(const std::vector<AcceptanceGrid>& grids, const std::string& caption = "");

// Every picture at six moments of its drawing, evenly by target passes, above the cells that are known by
// then, coloured as in acceptance_map; a row a picture. What is known of a picture is cut out of the finished
// one. Throws as acceptance_map does.
Image growth_strips(const std::vector<AcceptanceGrid>& grids, const std::string& caption = "");

// Their sizes for `count` pictures of one size, with words.
Extent acceptance_map_extent(std::int64_t count, const Extent& picture);
Extent growth_strips_extent(std::int64_t count, const Extent& picture);

}  // namespace lamplighter

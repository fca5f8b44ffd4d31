#pragma once

#include <cstdint>
#include <vector>

#include "lamplighter/image.h"

namespace lamplighter {

// A picture and, for every cell of its grid of tokens, how many tokens the cycle committed that made it.
struct AcceptanceGrid {
  Image picture;
  int rows = 0, columns = 0;
  std::vector<std::int64_t> committed;  // [rows * columns], raster order, 1 or more
};

// Every picture beside its grid, cells coloured from dark (1) to bright (the largest number of the set), on a
// contact sheet; below it a bar with one numbered field per number of tokens. Throws Error(usage) when there
// is no picture or a grid does not fit its cells.
Image acceptance_map(const std::vector<AcceptanceGrid>& grids);

}  // namespace lamplighter

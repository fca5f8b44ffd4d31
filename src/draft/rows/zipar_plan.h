#pragma once

#include <cstdint>
#include <vector>

namespace lamplighter {

// The passes of ZipAR (He et al. 2024, arXiv 2412.04062) over an image of rows * columns codes: a pass
// decides one code in every open row. A row after the first two opens when the one above it is `ahead` codes
// long: then a placeholder token stands at the end of the row above, which is recomputed as soon as it is
// known. Positions are in raster order.
struct ZiparPlan {
  // A row of a pass: the query at one position.
  struct Query {
    std::int64_t position;  // that runs
    std::int64_t code;      // the code that runs there, a number in the order of decoding
    bool decides = true;    // position + 1; otherwise a row's end is recomputed
  };
  using Pass = std::vector<Query>;  // those that decide first, from the image's top down

  std::vector<std::int64_t> order;  // positions as they are decided: 0, which the prompt decides, then passes
  std::vector<Pass> passes;

  std::int64_t widest() const;      // most queries of a pass, 1 or more
  std::int64_t recomputed() const;  // queries that recompute a row's end
};

// rows, columns >= 1; ahead 0: half of the columns. From ahead = columns on one row is open at a time.
ZiparPlan plan_zipar(std::int64_t rows, std::int64_t columns, std::int64_t ahead);

}  // namespace lamplighter

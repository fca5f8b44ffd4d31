// Rows of a picture that are drawn side by side.
#pragma once

#include <cstdint>
#include <vector>

namespace lamplighter {

// A picture of rows * columns codes, of which a pass decides one in every open row (ZipAR, He et al. 2024,
// arXiv 2412.04062). A row but the first two opens when the one above it is `ahead` codes long: then a
// stand-in takes the place of that row's end, which is run once more as soon as it is known. Places are in
// raster order.
struct OpenRows {
  struct Row {            // of a pass
    std::int64_t place;   // that is run
    std::int64_t code;    // the one that is run there, a number in the order of drawing
    bool decides = true;  // place + 1; otherwise a row's end once more, instead of its stand-in
  };
  using Pass = std::vector<Row>;  // those that decide first, from the picture's top down

  std::vector<std::int64_t>
      order;  // the places as they are decided: 0, which the prompt decides, then passes
  std::vector<Pass> passes;

  std::int64_t widest() const;  // most rows of a pass, 1 or more
  std::int64_t again() const;   // rows that are run once more
};

// rows, columns >= 1; ahead 0: half of the columns. From ahead = columns on one row is open at a time.
OpenRows open_rows(std::int64_t rows, std::int64_t columns, std::int64_t ahead);

}  // namespace lamplighter

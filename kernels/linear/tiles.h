#pragma once

#include <cstdint>
#include <utility>

#include "kernels/common/kernel_inline.h"
#include "kernels/linear/linear.h"

namespace lamplighter {

// One register tile: R rows times N neighbouring blocks.
struct LinearTile {
  const char* x;       // [lines][R] lines: the tile's rows, cut into lines
  const char* weight;  // first block
  const char* next;    // the next panel, for prefetching
  void* out;           // element (first row, first feature)
  int64_t block_bytes;
  int64_t in;
  int64_t out_stride;     // elements between rows of `out`
  int64_t out_features;   // features of `out` from the first one on
  int64_t number, tiles;  // which of the panel's tiles of rows it is
  int64_t share;          // 2^16 / tiles

  // For prefetching: line `at` of the first block, which has `lines` of 64 bytes; then lines of `next`.
  LAMPLIGHTER_INLINE const char* ahead(int64_t at, int64_t lines) const {
    return at < lines ? weight + 64 * at : next + 64 * (at - lines);
  }
  // The line that is fetched from memory at step `at`, `distance` before its use. Where a panel has several
  // tiles, each fetches its share of the next panel, so that memory is read while all of them compute, not
  // during the first alone.
  LAMPLIGHTER_INLINE const char* fetched(int64_t at, int64_t distance, int64_t lines) const {
    if (tiles == 1) return ahead(at + distance, lines);
    return next + 64 * ((number * lines + at) * share >> 16);
  }
};

// The most blocks of a panel in which a tile of `rows` rows is the largest, or one row lower than that.
template <class Kernel>
constexpr int most_blocks(int rows) {
  const int own = Kernel::blocks(rows);
  const int higher = rows < Kernel::kMaxRows ? Kernel::blocks(rows + 1) : 0;
  return own > higher ? own : higher;
}

template <class Kernel>
constexpr int most_blocks() {
  int most = 0;
  for (int rows = 1; rows <= Kernel::kMaxRows; ++rows) {
    if (Kernel::blocks(rows) > most) most = Kernel::blocks(rows);
  }
  return most;
}

template <class Kernel, int R, int N>
constexpr auto tile_or_none() -> void (*)(const LinearTile&) {
  if constexpr (N <= most_blocks<Kernel>(R)) {
    return Kernel::template compute<R, N>;
  } else {
    return nullptr;
  }
}

// Kernel::compute for `rows` rows and `blocks` blocks; Index: all tiles by number.
template <class Kernel, int... Index>
auto find_tile(int rows, int blocks, std::integer_sequence<int, Index...>) -> void (*)(const LinearTile&) {
  constexpr int kMost = most_blocks<Kernel>();
  static constexpr void (*kTiles[])(const LinearTile&) = {
      tile_or_none<Kernel, Index / kMost + 1, Index % kMost + 1>()...};
  return kTiles[(rows - 1) * kMost + blocks - 1];
}

// Bytes of a product up to which its model is one that caches keep from pass to pass.
constexpr int64_t kCachedWeights = 1 << 19;

// Walks passes of rows, panels of blocks and tiles of rows. `Kernel` must have internal linkage, so that
// every instruction set gets its own copy of this code. Kernel has:
//   kMaxRows                        most rows of a tile
//   kStreamedRows                   up to this number of rows a pass reads blocks of weights that no cache
//   keeps one
//                                   after the other: memory delivers one stream fastest
//   blocks(R)                       else blocks of a panel, side by side, when the largest tile has R rows
//   kLineElements, kLineBytes       elements of x in a line, and what they take there
//   block_bytes(in)                 size of a packed block
//   pack_line(row, count, line)     writes one line: `count` elements of x, then zeros
//   compute<R, N>(tile)             computes a tile; N <= most_blocks(R)
template <class Kernel>
void run_linear(const LinearArgs& args, int64_t begin, int64_t end, char* scratch) {
  constexpr int64_t kLines = Kernel::kLineElements < kLinearGroup ? kLinearGroup / Kernel::kLineElements : 1;
  static_assert(kLines * Kernel::kLineBytes <= kLinearScratchBytes, "linear_scratch_bytes is too little");
  using Element = typename Kernel::Element;
  const auto* x = static_cast<const Element*>(args.x);
  auto* out = static_cast<Element*>(args.out);
  const auto* weight = static_cast<const char*>(args.weight);
  const int64_t block_bytes = Kernel::block_bytes(args.in);
  const int64_t lines = (args.in + Kernel::kLineElements - 1) / Kernel::kLineElements;

  for (int64_t row = 0; row < args.rows; row += args.rows_per_pass) {
    const int64_t left = args.rows - row;
    const int64_t rows = left < args.rows_per_pass ? left : args.rows_per_pass;
    const int64_t tiles = (rows + Kernel::kMaxRows - 1) / Kernel::kMaxRows;
    // Tiles of nearly equal height: the first `rows % tiles` have one row more.
    const int64_t height = rows / tiles;
    const int64_t higher = rows % tiles;

    char* line = scratch;
    for (int64_t t = 0, first = row; t < tiles; ++t) {
      const int64_t tile_rows = height + (t < higher ? 1 : 0);
      for (int64_t l = 0; l < lines; ++l) {
        const int64_t start = l * Kernel::kLineElements;
        const int64_t count =
            args.in - start < Kernel::kLineElements ? args.in - start : Kernel::kLineElements;
        for (int64_t r = 0; r < tile_rows; ++r, line += Kernel::kLineBytes) {
          Kernel::pack_line(x + (first + r) * args.in + start, count, line);
        }
      }
      first += tile_rows;
    }

    const bool streams =
        rows <= Kernel::kStreamedRows && args.out_features * block_bytes / kLinearBlock > kCachedWeights;
    const int64_t panel = streams ? 1 : Kernel::blocks(static_cast<int>(height + (higher > 0 ? 1 : 0)));
    for (int64_t block = begin; block < end; block += panel) {
      const int64_t blocks = end - block < panel ? end - block : panel;
      LinearTile tile;
      tile.weight = weight + block * block_bytes;
      tile.block_bytes = block_bytes;
      tile.in = args.in;
      tile.out_stride = args.out_features;
      tile.out_features = args.out_features - block * kLinearBlock;
      tile.x = scratch;
      tile.tiles = tiles;
      tile.share = (int64_t{1} << 16) / tiles;
      tile.next = block + 2 * panel <= end ? tile.weight + panel * block_bytes : tile.weight;
      for (int64_t t = 0, first = row; t < tiles; ++t) {
        const int64_t tile_rows = height + (t < higher ? 1 : 0);
        tile.number = t;
        tile.out = out + first * args.out_features + block * kLinearBlock;
        find_tile<Kernel>(static_cast<int>(tile_rows), static_cast<int>(blocks),
                          std::make_integer_sequence<int, Kernel::kMaxRows * most_blocks<Kernel>()>())(tile);
        tile.x += tile_rows * lines * Kernel::kLineBytes;
        first += tile_rows;
      }
    }
  }
}

}  // namespace lamplighter

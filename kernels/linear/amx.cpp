#include <immintrin.h>

#include <cstring>

#include "kernels/linear/linear.h"
#include "kernels/linear/tiles.h"

namespace lamplighter {
namespace {

constexpr int64_t kTileLines = 16;               // of 64 bytes in a tile of a block's weights
constexpr int64_t kTileBytes = 64 * kTileLines;  // which holds
constexpr int64_t kTileFeatures = kTileBytes / 2 / kLinearBlock;  // input features
constexpr int kTileRows = 16;

// What the instruction ldtilecfg reads.
struct alignas(64) TileShapes {
  uint8_t palette = 1, start = 0, reserved[14]{};
  uint16_t bytes[16]{};
  uint8_t rows[16]{};

  void set(int tile, int count) {
    bytes[tile] = 64;
    rows[tile] = static_cast<uint8_t>(count);
  }
};

// Weights of the input features past the last whole tile, filled up with zeros: what lies behind a block in
// memory must not meet even the zeros of x.
template <int N>
struct Rest {
  alignas(64) char tiles[N][kTileBytes] = {};

  explicit Rest(const LinearTile& tile) {
    const int64_t features = tile.in % kTileFeatures;
    for (int n = 0; n < N; ++n) {
      const char* from = tile.weight + n * tile.block_bytes + tile.in / kTileFeatures * kTileBytes;
      const int64_t pairs = features / 2 * 64;
      std::memcpy(tiles[n], from, static_cast<size_t>(pairs));
      for (int64_t o = 0; o < kLinearBlock && features % 2 != 0; ++o)
        std::memcpy(tiles[n] + pairs + 4 * o, from + pairs + 2 * o, 2);
    }
  }
};

template <int N>
inline __attribute__((always_inline)) void fetch(const LinearTile& tile, int64_t line) {
  constexpr int64_t kAhead = 4 * kTileLines;
  const char* far = tile.ahead(line + kAhead, tile.in / 2);
#pragma GCC unroll 4
  for (int n = 0; n < N; ++n) {
#pragma GCC unroll 16
    for (int64_t i = 0; i < kTileLines; ++i) _mm_prefetch(far + n * tile.block_bytes + 64 * i, _MM_HINT_T1);
  }
}

// One step of at most 16 rows and N blocks. The sums are tiles 0 to N - 1, and the instructions want the
// numbers of tiles as they are.
template <int N>
inline __attribute__((always_inline)) void step_low(const char* x, const char* weight, int64_t block) {
  _tile_loadd(4, x, 64);
  _tile_loadd(5, weight, 64);
  _tile_dpbf16ps(0, 4, 5);
  if constexpr (N > 1) {
    _tile_loadd(6, weight + block, 64);
    _tile_dpbf16ps(1, 4, 6);
  }
  if constexpr (N > 2) {
    _tile_loadd(7, weight + 2 * block, 64);
    _tile_dpbf16ps(2, 4, 7);
  }
  if constexpr (N > 3) {
    _tile_loadd(5, weight + 3 * block, 64);
    _tile_dpbf16ps(3, 4, 5);
  }
}

// The same of 17 to 32 rows, the second half of which begins at `lower`, and one or two blocks: sums in tiles
// 0 and 1, sums of the lower rows in 2 and 3.
template <int N>
inline __attribute__((always_inline)) void step_high(const char* x, const char* lower, const char* weight,
                                                     int64_t block) {
  _tile_loadd(4, x, 64);
  _tile_loadd(5, lower, 64);
  _tile_loadd(6, weight, 64);
  _tile_dpbf16ps(0, 4, 6);
  _tile_dpbf16ps(2, 5, 6);
  if constexpr (N > 1) {
    _tile_loadd(7, weight + block, 64);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(3, 5, 7);
  }
}

template <int R, int N>
inline __attribute__((always_inline)) void step(const char* x, const char* weight, int64_t block) {
  if constexpr (R <= kTileRows) {
    step_low<N>(x, weight, block);
  } else {
    step_high<N>(x, x + 64 * ((R + 1) / 2), weight, block);
  }
}

void store(const LinearTile& tile, const float* sums, int first, int rows, int block) {
  const int64_t features = tile.out_features - block * kLinearBlock;
  const auto mask = static_cast<__mmask16>(features >= kLinearBlock ? 0xffff : (1 << features) - 1);
  auto* out = static_cast<uint16_t*>(tile.out) + first * tile.out_stride + block * kLinearBlock;
  for (int r = 0; r < rows; ++r, out += tile.out_stride, sums += kLinearBlock) {
    const __m256bh rounded = _mm512_cvtneps_pbh(_mm512_load_ps(sums));
    _mm256_mask_storeu_epi16(out, mask, reinterpret_cast<__m256i>(rounded));
  }
}

// Tile kernel for run_linear(). A row of a tile is one chain of sums over the input features, whatever the
// other rows hold.
struct AmxKernel {
  using Element = uint16_t;
  static constexpr int kMaxRows = 2 * kTileRows;
  static constexpr int64_t kLineElements = kTileFeatures;
  static constexpr int64_t kLineBytes = 64;

  static constexpr int kStreamedRows = 0;
  static constexpr int blocks(int rows) { return rows <= kTileRows ? 4 : 2; }
  static int64_t block_bytes(int64_t in) { return in * kLinearBlock * 2; }

  static void pack_line(const Element* x, int64_t count, char* line) {
    const auto mask = static_cast<__mmask32>((uint64_t{1} << count) - 1);
    _mm512_store_si512(line, _mm512_maskz_loadu_epi16(mask, x));
  }

  template <int R, int N>
  static void compute(const LinearTile& tile) {
    constexpr bool kHigh = R > kTileRows;
    constexpr int kUpper = kHigh ? (R + 1) / 2 : R, kLower = R - kUpper;
    TileShapes shapes;
    for (int t : {0, 1}) shapes.set(t, kUpper);
    for (int t : {2, 3}) shapes.set(t, kHigh ? kLower : kUpper);
    shapes.set(4, kUpper);
    shapes.set(5, kHigh ? kLower : kTileRows);
    for (int t : {6, 7}) shapes.set(t, kTileRows);
    _tile_loadconfig(&shapes);  // makes all tiles zero

    const int64_t lines = tile.in / kTileFeatures * kTileLines;
    const char* x = tile.x;
    for (int64_t line = 0; line < lines; line += kTileLines, x += 64 * R) {
      fetch<N>(tile, line);
      step<R, N>(x, tile.weight + 64 * line, tile.block_bytes);
    }
    if (tile.in % kTileFeatures != 0) {
      const Rest<N> rest(tile);
      step<R, N>(x, rest.tiles[0], kTileBytes);
    }

    alignas(64) float sums[4][kTileRows * kLinearBlock];
    _tile_stored(0, sums[0], 64);
    store(tile, sums[0], 0, kUpper, 0);
    if constexpr (N > 1) {
      _tile_stored(1, sums[1], 64);
      store(tile, sums[1], 0, kUpper, 1);
    }
    if constexpr (kHigh || N > 2) {
      _tile_stored(2, sums[2], 64);
      store(tile, sums[2], kHigh ? kUpper : 0, kHigh ? kLower : kUpper, kHigh ? 0 : 2);
    }
    if constexpr ((kHigh && N > 1) || N > 3) {
      _tile_stored(3, sums[3], 64);
      store(tile, sums[3], kHigh ? kUpper : 0, kHigh ? kLower : kUpper, kHigh ? 1 : 3);
    }
  }
};

}  // namespace

void linear_bfloat16_amx(const LinearArgs& args, int64_t begin, int64_t end, void* scratch) {
  run_linear<AmxKernel>(args, begin, end, static_cast<char*>(scratch));
  _tile_release();
}

}  // namespace lamplighter

#pragma once

#include <cstdint>
#include <cstring>
#include <limits>

#include "kernels/common/rounding.h"
#include "kernels/linear/linear.h"
#include "kernels/linear/tiles.h"

// Products of int8 or int4 weights and bf16 rows, over the vector vocabulary (simd_*.h).
namespace lamplighter {
namespace {

// kInt8: a line has four features of every output.
struct ByteWeights {
  static constexpr int kBits = 8, kOffset = 128;
  static constexpr int64_t kRowGroup = kLinearRowGroup;
  static constexpr int kLines = static_cast<int>(kRowGroup) / 4;
  static constexpr int kBlockHeader = 64, kGroupHeader = 0;  // bytes
};

// kInt4: a line has eight, four in the low halves of its bytes, then four in the high ones.
struct HalfByteWeights {
  static constexpr int kBits = 4, kOffset = 8;
  static constexpr int64_t kRowGroup = kLinearGroup;
  static constexpr int kLines = static_cast<int>(kRowGroup) / 8;
  static constexpr int kBlockHeader = 0, kGroupHeader = 32;
};

// A group of a row as the products read it: integers up to 127 times a scale, four bytes in a word unless
// Products packs them in another way. The weights are stored with an offset, so that they have no sign; the
// sums begin with what takes it away.
template <int Words>
struct RowGroup {
  uint32_t start;
  float scale;
  uint32_t values[Words];
};

// Rounds `count` features, the rest of the group being zero. A group that is not finite gets NaN as scale.
template <class Products>
inline void round_group(const uint16_t* x, int64_t count, RowGroup<Products::kWords>* group) {
  using Simd = typename Products::Vectors;
  constexpr int64_t kFeatures = Products::Stored::kRowGroup;
  uint16_t padded[kFeatures];
  if (count < kFeatures) {
    std::memset(padded, 0, sizeof(padded));
    std::memcpy(padded, x, static_cast<size_t>(count) * sizeof(uint16_t));
    x = padded;
  }
  uint16_t top = 0;
  for (int64_t i = 0; i < kFeatures; ++i) {
    const auto magnitude = static_cast<uint16_t>(x[i] & 0x7fffU);
    top = magnitude > top ? magnitude : top;
  }
  if (top >= kBFloat16Infinity) {
    *group = {0, std::numeric_limits<float>::quiet_NaN(), {}};
    return;
  }
  const float largest = bfloat16_value(top);
  const float range = largest > kLinearSmallestRange ? largest : kLinearSmallestRange;
  const auto factor = Simd::set(127.0F / range);
  constexpr bool kBytes = Products::kWords * 4 == kFeatures;  // the words are the bytes
  alignas(64) int8_t buffer[kBytes ? 1 : kFeatures];
  int8_t* values = kBytes ? reinterpret_cast<int8_t*>(group->values) : buffer;
  auto sum = Simd::zero();  // exact: integers below 2^24
  for (int64_t i = 0; i < kFeatures; i += Simd::kLanes) {
    const auto value = Simd::round(Simd::mul(Simd::load(x + i), factor));
    sum = Simd::add(sum, value);
    Simd::store_bytes(values + i, value);
  }
  group->scale = range / 127.0F;
  group->start = Products::start(values, static_cast<int>(Simd::sum(sum)));
  if constexpr (!kBytes) Products::pack(values, group->values);
}

// Products by Simd::add_bytes: four unsigned bytes of weights and four signed ones of a row in every lane.
template <class Simd, class Weights>
struct ByteProducts {
  using Vectors = Simd;
  using Stored = Weights;
  using Words = typename Simd::W;
  static constexpr int kParts = Weights::kBits == 4 ? 2 : 1;  // of a line, each with a word of the row
  static constexpr int kWords = static_cast<int>(Weights::kRowGroup) / 4;

  static constexpr int word(int line, int part) { return line * kParts + part; }
  // What the sums of a group begin with, whose values have this sum.
  static uint32_t start(const int8_t*, int sum) { return static_cast<uint32_t>(-Weights::kOffset * sum); }
  static Words part(Words stored, int part) {
    return kParts == 1 ? stored : part == 0 ? Simd::low_halves(stored) : Simd::high_halves(stored);
  }
  static Words add(Words sum, Words weights, Words value) { return Simd::add_bytes(sum, weights, value); }
  static Words whole(Words sum) { return sum; }  // a group's sum as int32 lanes
};

// Tiles have at most MaxRows rows. Panel has blocks(rows) and kStreamedRows, see run_linear; far(rows,
// blocks) and near(blocks), the lines of weights between a fetch to the second cache level, and to the
// first, and their use. Within a group the sums are exact; the groups' sums are added in their order, each
// multiplied first by the scale of the weights if groups of weights have one, then by that of the row's
// group. Products, see ByteProducts, is how an instruction set multiplies.
template <class Products, int MaxRows, class Panel>
struct IntegerKernel {
  using Simd = typename Products::Vectors;
  using Weights = typename Products::Stored;
  using Element = uint16_t;  // bf16
  static constexpr int kMaxRows = MaxRows;
  using Group = RowGroup<Products::kWords>;
  static constexpr int64_t kLineElements = Weights::kRowGroup;
  static constexpr int64_t kLineBytes = sizeof(Group);
  static constexpr int kStreamedRows = Panel::kStreamedRows;
  static constexpr int blocks(int rows) { return Panel::blocks(rows); }
  static int64_t block_bytes(int64_t in) { return linear_integer_block_bytes(Weights::kBits, in); }

  static void pack_line(const Element* x, int64_t count, char* line) {
    round_group<Products>(x, count, reinterpret_cast<Group*>(line));
  }

  template <int R, int N>
  static void compute(const LinearTile& tile) {
    constexpr int V = N * kVectors;
    Numbers totals[R][V];
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) totals[r][v] = Simd::zero();
    }
    const int64_t lines = tile.block_bytes / 64;
    const auto* x = reinterpret_cast<const Group*>(tile.x);
    const char* weight = tile.weight + Weights::kBlockHeader;
    const char* const end = tile.weight + tile.block_bytes;
    for (; weight < end; x += R) {
      Words sums[R][V];
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
        for (int v = 0; v < V; ++v) sums[r][v] = Simd::set_word(x[r].start);
      }
      const char* scales = weight;
      weight += Weights::kGroupHeader;
      const char* const whole = weight + 64 * Weights::kLines;
      const char* const last = whole < end ? whole : end;
      int first = 0;
      do {  // at least once, which lets compilers keep the sums in registers
        const int64_t now = (weight - tile.weight) / 64;
        const char* later = tile.fetched(now, Panel::far(R, N), lines);
        const char* soon = tile.ahead(now + Panel::near(N), lines);
#pragma GCC unroll 4
        for (int line = 0; line < kTogether; ++line) {
#pragma GCC unroll 4
          for (int n = 0; n < N; ++n) {
            __builtin_prefetch(later + n * tile.block_bytes + 64 * line, 0, 2);
            __builtin_prefetch(soon + n * tile.block_bytes + 64 * line, 0, 3);
          }
          add_line<R, V>(sums, x, first + line, weight + 64 * line, tile.block_bytes);
        }
        first += kTogether;
        weight += 64 * kTogether;
      } while (weight < last);
      add_group<R, V>(totals, sums, x, scales, tile.block_bytes);
    }
    store<R, V>(tile, totals);
  }

 private:
  using Numbers = typename Simd::F;
  using Words = typename Simd::W;
  static constexpr int kVectors = static_cast<int>(kLinearBlock) / Simd::kLanes;  // of a block
  static constexpr int kStepBytes = 64 / kVectors;
  static constexpr int kTogether = 4;  // lines

  // Where vector v of a line lies, blocks side by side.
  static const char* words_at(const char* line, int v, int64_t block) {
    return line + v / kVectors * block + v % kVectors * kStepBytes;
  }

  // sums += the products of a line, a part after the other
  template <int R, int V>
  static inline __attribute__((always_inline)) void add_line(Words (&sums)[R][V], const Group* x, int line,
                                                             const char* weight, int64_t block) {
    Words stored[V];
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) stored[v] = Simd::load_words(words_at(weight, v, block));
#pragma GCC unroll 2
    for (int part = 0; part < Products::kParts; ++part) {
      Words weights[V];
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) weights[v] = Products::part(stored[v], part);
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) {
        const Words value = Simd::set_word(x[r].values[Products::word(line, part)]);
#pragma GCC unroll 8
        for (int v = 0; v < V; ++v) sums[r][v] = Products::add(sums[r][v], weights[v], value);
      }
    }
  }

  template <int R, int V>
  static inline __attribute__((always_inline)) void add_group(Numbers (&totals)[R][V],
                                                              const Words (&sums)[R][V], const Group* x,
                                                              const char* scales, int64_t block) {
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) {
      const char* from = scales + v / kVectors * block + v % kVectors * 2 * Simd::kLanes;
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) {
        Numbers sum = Simd::to_floats(Products::whole(sums[r][v]));
        if (Weights::kGroupHeader != 0)
          sum = Simd::mul(sum, Simd::load(reinterpret_cast<const Element*>(from)));
        totals[r][v] = Simd::add(totals[r][v], Simd::mul(sum, Simd::set(x[r].scale)));
      }
    }
  }

  template <int R, int V>
  static inline __attribute__((always_inline)) void store(const LinearTile& tile,
                                                          const Numbers (&totals)[R][V]) {
    auto* out = static_cast<Element*>(tile.out);
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) {
      const char* from = tile.weight + v / kVectors * tile.block_bytes + v % kVectors * 4 * Simd::kLanes;
      const int64_t left = tile.out_features - v * Simd::kLanes;
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) {
        Numbers result = totals[r][v];
        if (Weights::kBlockHeader != 0) result = Simd::mul(result, Simd::as_floats(Simd::load_words(from)));
        Element* to = out + r * tile.out_stride + v * Simd::kLanes;
        if (left >= Simd::kLanes) {
          Simd::store(to, result);
        } else if (left > 0) {
          Simd::store(to, result, left);
        }
      }
    }
  }
};

}  // namespace
}  // namespace lamplighter

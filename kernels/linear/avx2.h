#pragma once

#include <type_traits>

#include "kernels/common/simd_avx2.h"
#include "kernels/linear/integers.h"
#include "kernels/linear/lanes.h"

namespace lamplighter {
namespace {

// What a step holds fits 16 registers.
template <class Element>
using FloatKernel = LanesKernel<Avx2, Element, 6, 2, sizeof(Element) == 2>;

// `sum` in a register. GCC would add the products of several lines to each other before it adds them to the
// sum, and store them all meanwhile.
inline __attribute__((always_inline)) __m256i kept(__m256i sum) {
  asm("" : "+x"(sum));
  return sum;
}

// kInt8: products of 16 bits, even features of a line, then odd ones, which are exact in 32 bits. Products of
// bytes (vpmaddubsw) take as many instructions, because their sums of two fill 16 bits and need the weights'
// signs moved to the row first.
struct PairProducts {
  using Vectors = Avx2;
  using Stored = ByteWeights;
  using Words = __m256i;
  static constexpr int kParts = 2;
  static constexpr int kWords = static_cast<int>(kLinearRowGroup) / 2;

  static constexpr int word(int line, int part) { return part * ByteWeights::kLines + line; }
  static void pack(const int8_t* values, uint32_t* words) {
    for (int line = 0; line < ByteWeights::kLines; line += Avx2::kLanes) {
      const Words bytes = Avx2::load_words(values + 4 * line);
      Avx2::store_words(words + word(line, 0), _mm256_srai_epi16(_mm256_slli_epi16(bytes, 8), 8));
      Avx2::store_words(words + word(line, 1), _mm256_srai_epi16(bytes, 8));
    }
  }
  static uint32_t start(const int8_t* values, int sum) {
    return ByteProducts<Avx2, ByteWeights>::start(values, sum);
  }
  static Words part(Words stored, int part) {
    return part == 0 ? _mm256_and_si256(stored, _mm256_set1_epi16(255)) : _mm256_srli_epi16(stored, 8);
  }
  static Words add(Words sum, Words weights, Words value) {
    return kept(_mm256_add_epi32(sum, _mm256_madd_epi16(weights, value)));
  }
  static Words whole(Words sum) { return sum; }
};

// kInt4: products of bytes, summed in 16 bits. A lane sums 32 features of a group; those that are still to
// come count -8 times their value, so that no sum goes beyond 32 x 8 x 127 = 32,512.
struct HalfByteProducts : ByteProducts<Avx2, HalfByteWeights> {
  using Words = __m256i;

  // For the features of the low and of the high half of a lane.
  static uint32_t start(const int8_t* values, int) {
    const Words ones = _mm256_set1_epi8(1);
    const Words sums = _mm256_add_epi16(_mm256_maddubs_epi16(ones, Avx2::load_words(values)),
                                        _mm256_maddubs_epi16(ones, Avx2::load_words(values + 32)));
    __m128i both = _mm_add_epi16(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
    both = _mm_add_epi16(both, _mm_unpackhi_epi64(both, both));
    both = _mm_add_epi16(both, _mm_shuffle_epi32(both, 1));
    both = _mm_mullo_epi16(both, _mm_set1_epi16(-HalfByteWeights::kOffset));
    return static_cast<uint32_t>(_mm_cvtsi128_si32(both));
  }
  static Words add(Words sum, Words weights, Words value) {
    return kept(_mm256_add_epi16(sum, _mm256_maddubs_epi16(weights, value)));
  }
  static Words whole(Words sum) { return _mm256_madd_epi16(sum, _mm256_set1_epi16(1)); }
};

struct Panel {
  static constexpr int kStreamedRows = 0;
  static constexpr int blocks(int rows) { return rows <= 2 ? 2 : 1; }
  static constexpr int far(int, int) { return 160; }
  static constexpr int near(int) { return 32; }
};

template <class Weights>
using Integers =
    IntegerKernel<std::conditional_t<Weights::kBits == 8, PairProducts, HalfByteProducts>, 6, Panel>;

}  // namespace
}  // namespace lamplighter

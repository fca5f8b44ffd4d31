#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "kernels/linear/int8.h"
#include "kernels/linear/linear.h"

namespace lamplighter {
namespace {

template <class Element>
void pack_blocks(const Element* weight, Element* packed, int64_t out_features, int64_t in, int64_t begin,
                 int64_t end) {
  constexpr int64_t group = sizeof(Element) == 2 ? 2 : 1;  // features side by side
  const int64_t grouped = in / group * group;
  for (int64_t block = begin; block < end; ++block) {
    const int64_t left = out_features - block * kLinearBlock;
    const int64_t features = left < kLinearBlock ? left : kLinearBlock;
    const Element* from = weight + block * kLinearBlock * in;
    Element* to = packed + block * kLinearBlock * in;
    for (int64_t k = 0; k < in; ++k) {
      const int64_t width = k < grouped ? group : 1;
      Element* base = to + k / width * width * kLinearBlock + k % width;
      for (int64_t o = 0; o < kLinearBlock; ++o)
        base[o * width] = o < features ? from[o * in + k] : Element{0};
    }
  }
}

float as_float(float value) {
  return value;
}
float as_float(uint16_t value) {
  return bfloat16_value(value);
}

template <class Element>
void pack_int8_blocks(const Element* weight, char* packed, int64_t out_features, int64_t in, int64_t padded,
                      int64_t begin, int64_t end) {
  const int64_t block_bytes = kLinearBlock * (padded + kLinearInt8Header);
  std::memset(packed + begin * block_bytes, 0, static_cast<size_t>((end - begin) * block_bytes));
  const int64_t last = end * kLinearBlock < out_features ? end * kLinearBlock : out_features;
  for (int64_t feature = begin * kLinearBlock; feature < last; ++feature) {
    const Element* from = weight + feature * in;
    char* block = packed + feature / kLinearBlock * block_bytes;
    const int64_t lane = feature % kLinearBlock;
    float range = kLinearInt8Smallest;
    bool finite = true;
    for (int64_t k = 0; k < in; ++k) {
      const float size = std::fabs(as_float(from[k]));
      finite = finite && size <= std::numeric_limits<float>::max();
      range = size > range ? size : range;
    }
    const float scale = finite ? range / 127.0F : std::numeric_limits<float>::quiet_NaN();
    std::memcpy(block + 4 * lane, &scale, sizeof(scale));
    if (!finite) continue;
    char* to = block + kLinearBlock * kLinearInt8Header + 2 * lane;
    const float factor = 127.0F / range;
    for (int64_t k = 0; k < in; ++k) {
      to[k / 2 * 2 * kLinearBlock + k % 2] = static_cast<char>(nearest_integer(as_float(from[k]) * factor));
    }
  }
}

}  // namespace

void pack_linear_blocks(const void* weight, void* packed, int64_t out_features, int64_t in, ElementType type,
                        int64_t begin, int64_t end) {
  if (type == ElementType::kFloat32) {
    pack_blocks(static_cast<const float*>(weight), static_cast<float*>(packed), out_features, in, begin, end);
  } else {
    pack_blocks(static_cast<const uint16_t*>(weight), static_cast<uint16_t*>(packed), out_features, in, begin,
                end);
  }
}

void pack_linear_int8_blocks(const void* weight, void* packed, int64_t out_features, int64_t in,
                             int64_t padded, ElementType type, int64_t begin, int64_t end) {
  auto* to = static_cast<char*>(packed);
  if (type == ElementType::kFloat32) {
    pack_int8_blocks(static_cast<const float*>(weight), to, out_features, in, padded, begin, end);
  } else {
    pack_int8_blocks(static_cast<const uint16_t*>(weight), to, out_features, in, padded, begin, end);
  }
}

int64_t linear_rows_per_pass(int64_t rows, int64_t in) {
  constexpr int64_t cache = 256 * 1024;  // packed rows of a pass: they stay in the second-level cache
  constexpr int64_t least = 12;
  const int64_t row_bytes = (in + 15) / 16 * 64;
  const int64_t fit = cache / row_bytes < least ? least : cache / row_bytes;
  const int64_t passes = (rows + fit - 1) / fit;
  return passes == 0 ? 1 : (rows + passes - 1) / passes;
}

size_t linear_scratch_bytes(const LinearArgs& args) {
  return static_cast<size_t>(args.rows_per_pass * ((args.in + 15) / 16 * 64));
}

}  // namespace lamplighter

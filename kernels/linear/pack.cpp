#include <cstdint>
#include <cstring>

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

// A rounded feature's part of a packed block; `lane` is its position there.
void pack_bytes(const char* feature, int64_t in, int64_t lane, char* block) {
  std::memcpy(block + 4 * lane, feature + in, 4);
  char* to = block + 4 * kLinearBlock + 4 * lane;
  for (int64_t k = 0; k < in; ++k) {
    to[k / 4 * 4 * kLinearBlock + k % 4] = static_cast<char>(static_cast<unsigned char>(feature[k]) ^ 0x80U);
  }
}

void pack_half_bytes(const char* feature, int64_t in, int64_t lane, char* block) {
  constexpr int64_t kStored = 2 + kLinearGroup / 2, kPacked = kLinearBlock * kStored;
  for (int64_t group = 0; group < linear_groups(in); ++group) {
    const char* from = feature + group * kStored;
    char* to = block + group * kPacked;
    std::memcpy(to + 2 * lane, from, 2);
    for (int64_t k = 0; k < kLinearGroup / 8; ++k) {
      std::memcpy(to + 2 * kLinearBlock + 4 * (kLinearBlock * k + lane), from + 2 + 4 * k, 4);
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

void pack_rounded_blocks(const void* rounded, void* packed, int64_t out_features, int64_t in, int bits,
                         int64_t begin, int64_t end) {
  const int64_t feature_bytes = linear_rounded_bytes(bits, in);
  const int64_t block_bytes = linear_integer_block_bytes(bits, in);
  auto* to = static_cast<char*>(packed);
  const int zero = bits == 8 ? 0x80 : 0x88;  // the offset, in each half
  std::memset(to + begin * block_bytes, zero, static_cast<size_t>((end - begin) * block_bytes));
  const auto pack = bits == 8 ? &pack_bytes : &pack_half_bytes;
  const int64_t last = end * kLinearBlock < out_features ? end * kLinearBlock : out_features;
  for (int64_t feature = begin * kLinearBlock; feature < last; ++feature) {
    pack(static_cast<const char*>(rounded) + feature * feature_bytes, in, feature % kLinearBlock,
         to + feature / kLinearBlock * block_bytes);
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
  return static_cast<size_t>(args.rows_per_pass * linear_groups(args.in) * kLinearScratchBytes);
}

}  // namespace lamplighter

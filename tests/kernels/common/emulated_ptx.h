#pragma once

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <functional>

#include "kernels/common/numbers.h"

// The functions of kernels/common/cuda/device.h for emulated_device.h.
namespace lamplighter {
namespace emulated {

constexpr unsigned kWholeWarp = 0xFFFFFFFFU;

// What the kernels in front of the one that runs have done by the time it has waited for them: called by
// every thread that waits.
inline std::function<void()>& at_wait() {
  static std::function<void()> work;
  return work;
}

// One lane's part of a matrix load.
struct MatrixRow {
  const char* row;
  uint32_t* to;
};

inline void load(uint32_t (&to)[4], const void* row, bool transposed, Site site) {
  Block::active().check_shared(row, 16);
  MatrixRow own{static_cast<const char*>(row), to};
  meet(kWholeWarp, site, own, [=](MatrixRow** lanes) {
    for (int m = 0; m < 4; ++m) {
      unsigned banks = 0;
      for (int r = 0; r < 8; ++r) {
        const unsigned bank = 1U << (reinterpret_cast<uintptr_t>(lanes[8 * m + r]->row) / 16 % 8);
        if ((banks & bank) != 0) ++counters().bank_conflicts;
        banks |= bank;
      }
      const auto element = [&](int r, int c) {
        uint16_t bits;
        std::memcpy(&bits, lanes[8 * m + (transposed ? c : r)]->row + 2 * (transposed ? r : c), 2);
        return uint32_t{bits};
      };
      for (int l = 0; l < kLanes; ++l) {
        lanes[l]->to[m] = element(l / 4, 2 * (l % 4)) | element(l / 4, 2 * (l % 4) + 1) << 16;
      }
    }
  });
}

// One lane's part of a product.
struct Fragments {
  float* sum;
  const uint32_t* a;
  uint32_t b[2];
};

template <class T>
float element(uint32_t pair, int i) {
  return widen(T{static_cast<uint16_t>(pair >> (16 * i))});
}

template <class T>
void multiply(Fragments** lanes) {
  float a[16][16], b[16][8];
  for (int l = 0; l < kLanes; ++l) {
    const int g = l / 4, t = l % 4;
    for (int i = 0; i < 2; ++i) {
      for (int part = 0; part < 4; ++part) {
        a[g + part % 2 * 8][2 * t + i + part / 2 * 8] = element<T>(lanes[l]->a[part], i);
      }
      for (int part = 0; part < 2; ++part) b[2 * t + i + part * 8][g] = element<T>(lanes[l]->b[part], i);
    }
  }
  for (int l = 0; l < kLanes; ++l) {
    for (int i = 0; i < 4; ++i) {
      const int row = l / 4 + i / 2 * 8, column = 2 * (l % 4) + i % 2;
      double sum = 0;
      for (int k = 0; k < 16; ++k) sum += double{a[row][k]} * double{b[k][column]};
      lanes[l]->sum[i] = static_cast<float>(lanes[l]->sum[i] + sum);
    }
  }
}

}  // namespace emulated

inline uint16_t bfloat16_bits(float value) {
  return c10::BFloat16(value).x;
}
inline uint16_t float16_bits(float value) {
  return c10::Half(value).x;
}

inline float exp2_approximate(float x) {
  const float result = std::exp2(x);
  return result < 0x1p-126F ? 0.0F : result;
}

inline void wait_for_earlier_kernels() {
  if (emulated::at_wait()) emulated::at_wait()();
}
inline void let_next_kernel_start() {}

// Of kernels/common/cuda/cluster.h; a barrier's second half does all of its work here.
inline int cluster_rank() {
  return emulated::Block::active().rank();
}
inline void sync_cluster(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  emulated::Block::active().cluster_barrier({file, line}, false);
}
inline void announce_to_cluster() {
  emulated::Block::active().announce();
}
inline void wait_for_cluster(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  emulated::Block::active().cluster_barrier({file, line}, true);
}
template <class T>
T* in_block(T* own, int rank) {
  return static_cast<T*>(emulated::Block::active().in_block(own, rank));
}

inline void load_once(uint32_t (&to)[4], const void* global) {
  if (reinterpret_cast<uintptr_t>(global) % 16 != 0)
    emulated::Block::active().fail("loads from an address that is not aligned");
  std::memcpy(to, global, 16);
}

inline uint32_t multiply_pairs(uint32_t a, uint32_t b) {
  const auto product = [=](int i) {
    return uint32_t{
        bfloat16_bits(emulated::element<BFloat16Bits>(a, i) * emulated::element<BFloat16Bits>(b, i))};
  };
  return product(0) | product(1) << 16;
}

inline char* shared_memory() {
  return emulated::Block::active().shared();
}

inline void copy_async(void* shared, const void* global, bool valid) {
  emulated::Block& block = emulated::Block::active();
  block.check_shared(shared, 16);
  if (reinterpret_cast<uintptr_t>(global) % 16 != 0) block.fail("copies from an address that is not aligned");
  std::memset(shared, emulated::kPoison, 16);
  block.fibre().open.push_back({shared, valid ? global : nullptr});
  emulated::counters().copied_bytes += valid ? 16 : 0;
}

inline void commit_copies() {
  emulated::Fibre& fibre = emulated::Block::active().fibre();
  fibre.groups.push_back(std::move(fibre.open));
  fibre.open.clear();
}

template <int kOpen>
void wait_for_copies() {
  auto& groups = emulated::Block::active().fibre().groups;
  while (groups.size() > kOpen) {
    for (const emulated::Copy& copy : groups.front()) {
      if (copy.from == nullptr) {
        std::memset(copy.to, 0, 16);
      } else {
        std::memcpy(copy.to, copy.from, 16);
      }
    }
    groups.erase(groups.begin());
  }
}

inline void load_matrices(uint32_t (&to)[4], const void* row, const char* file = __builtin_FILE(),
                          int line = __builtin_LINE()) {
  emulated::load(to, row, false, {file, line});
}

inline void load_transposed(uint32_t (&to)[4], const void* row, const char* file = __builtin_FILE(),
                            int line = __builtin_LINE()) {
  emulated::load(to, row, true, {file, line});
}

template <class T>
void multiply_add(float (&sum)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1, T,
                  const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  emulated::Fragments own{sum, a, {b0, b1}};
  emulated::meet(emulated::kWholeWarp, {file, line}, own, emulated::multiply<T>);
}

}  // namespace lamplighter

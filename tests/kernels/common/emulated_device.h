#pragma once

// Device code on the CPU. A test includes this header before the device headers of kernels/ (cuda_*.h and
// what they include), which then compile as plain C++; then
//     emulated::launch(grid, {kThreads}, shared_bytes, [&] { some_kernel<...>(args); });
// runs the kernel in every thread of every block, one block after the other; with a number of blocks at the
// end these run at the same time, as a cluster, and may not use `__shared__` variables. Threads are fibres
// that switch at barriers and at operations of a warp only, in an order that emulated::shuffle() changes: run
// a kernel under several orders to find missing barriers. Before a block starts its dynamic shared memory
// (shared_memory() of common/cuda/device.h) holds NaN; `__shared__` variables are static and hold what the
// block before left. Copies of common/cuda/device.h land when they are waited for and their target holds NaN
// until then. launch() throws std::runtime_error when threads of a block wait at different places, when one
// ends before a barrier of the others, and when a copy or matrix load leaves the dynamic shared memory.
// emulated::counters() tells what the launches since reset() moved.

#if defined(__CUDACC__)
#error "for tests that g++ compiles"
#endif
#define LAMPLIGHTER_EMULATED_DEVICE 1

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "tests/kernels/common/emulated_block.h"

#define __device__
#define __global__
#define __grid_constant__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __shared__ static

namespace lamplighter::emulated {

struct Counters {
  int64_t blocks = 0;
  int64_t copied_bytes = 0;    // from global to shared memory by copies of common/cuda/device.h
  int64_t bank_conflicts = 0;  // rows of matrix loads that share a bank with another one
};

inline Counters& counters() {
  static Counters all;
  return all;
}

// Order of the threads of later launches: 0 is rising, any other seed random.
inline unsigned& shuffle() {
  static unsigned seed = 0;
  return seed;
}

// This block's index, read at every use: blocks of a cluster, which lie along x, take turns.
struct BlockIndex {
  struct Coordinate {
    unsigned first = 0;
    bool ranked = false;
    operator unsigned() const {  // NOLINT: as implicit as CUDA's
      return first + (ranked ? static_cast<unsigned>(Block::active().rank()) : 0U);
    }
  };
  Coordinate x{0, true}, y, z;
};

inline BlockIndex block_index;
inline Size3 block_size;
inline Size3 grid_size;

// This thread's index, read at every use.
struct ThreadIndex {
  struct Coordinate {
    int axis;
    operator unsigned() const {  // NOLINT: as implicit as CUDA's
      const auto i = static_cast<unsigned>(Block::active().thread());
      if (axis == 0) return i % block_size.x;
      return axis == 1 ? i / block_size.x % block_size.y : i / block_size.x / block_size.y;
    }
  };
  Coordinate x{0}, y{1}, z{2};
};

template <class F>
void launch(Size3 grid, Size3 block, size_t shared_bytes, F kernel, unsigned cluster = 1) {
  static Block emulation;
  const std::function<void()> body = kernel;
  grid_size = grid;
  block_size = block;
  for (unsigned z = 0; z < grid.z; ++z) {
    for (unsigned y = 0; y < grid.y; ++y) {
      for (unsigned x = 0; x < grid.x; x += cluster) {
        block_index.x.first = x;
        block_index.y.first = y;
        block_index.z.first = z;
        counters().blocks += cluster;
        emulation.run(block, shared_bytes, shuffle(), body, static_cast<int>(cluster));
      }
    }
  }
}

// f(values) once all lanes of the mask are here; values[lane] points to each one's `value`.
template <class T, class F>
void meet(unsigned mask, Site site, T& value, F f) {
  Block::active().meet(mask, site, &value, [&](void* const* lanes) {
    T* values[kLanes];
    for (int i = 0; i < kLanes; ++i) values[i] = static_cast<T*>(lanes[i]);
    f(values);
  });
}

// Every lane gets source(lane)'s value; its own when that lane does not exist or is not in the mask.
template <class T, class F>
T exchange(unsigned mask, Site site, T value, F source) {
  struct Lane {
    T value;
    int source;
  };
  const int lane = Block::active().thread() % kLanes;
  Lane own{value, source(lane)};
  meet(mask, site, own, [](Lane** lanes) {
    T results[kLanes];
    for (int i = 0; i < kLanes; ++i) {
      if (lanes[i] == nullptr) continue;
      const int from = lanes[i]->source;
      const bool found = from >= 0 && from < kLanes && lanes[from] != nullptr;
      results[i] = lanes[found ? from : i]->value;
    }
    for (int i = 0; i < kLanes; ++i) {
      if (lanes[i] != nullptr) lanes[i]->value = results[i];
    }
  });
  return own.value;
}

}  // namespace lamplighter::emulated

#include "tests/kernels/common/emulated_builtins.h"
#include "tests/kernels/common/emulated_ptx.h"

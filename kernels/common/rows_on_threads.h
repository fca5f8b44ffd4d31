#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/common/parallel.h"

namespace lamplighter {

// CPU: calls kernel(args, begin, end) for parts of `rows` rows of `width` elements on several threads.
template <class Args>
void rows_on_threads(const Args& args, int64_t rows, int64_t width,
                     void (*kernel)(const Args&, int64_t, int64_t)) {
  constexpr int64_t kElementsPerThread = 32768;  // below, waking another thread costs more
  const int64_t grain = std::max<int64_t>(1, kElementsPerThread / width);
  parallel_for(0, rows, grain, [&](int64_t begin, int64_t end) { kernel(args, begin, end); });
}

}  // namespace lamplighter

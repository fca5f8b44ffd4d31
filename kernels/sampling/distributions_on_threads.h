#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/common/isa.h"
#include "kernels/common/parallel.h"
#include "kernels/common/scratch.h"
#include "kernels/sampling/distribution.h"

namespace lamplighter {

// CPU: calls kernel(args, begin, end, scratch) for parts of the rows of all images on several threads, each
// with `bytes` bytes of scratch memory.
template <class Args>
void distributions_on_threads(const Args& args, const DistributionRows& rows, size_t bytes,
                              void (*kernel)(const Args&, int64_t, int64_t, void*)) {
  constexpr int64_t kElementsPerTask = 16384;  // below that a thread costs more than it saves
  parallel_for(0, args.images * rows.rows, std::max<int64_t>(1, kElementsPerTask / rows.vocabulary),
               [&](int64_t begin, int64_t end) { kernel(args, begin, end, thread_scratch(bytes)); });
}

}  // namespace lamplighter

#pragma once

#include <c10/util/FunctionRef.h>

#include <cstdint>

#include "kernels/common/exported.h"

namespace lamplighter {

// CPU: calls body(begin, end) for consecutive parts of [begin, end), each of at least `grain` but for the
// last, on at most at::get_num_threads() threads. at::parallel_for makes the same parts. The calling
// thread runs the first. Rethrows what a part throws. Within a part it is serial.
//
// The threads belong to the calling thread, as OpenMP's do. Unlike OpenMP's, a thread that has not begun its
// part when the calling thread is through with its own is not waited for: the calling thread runs that part,
// too. So other programs on the machine cost their share of the processors, not a time slice for each kernel.
LAMPLIGHTER_EXPORTED void parallel_for(int64_t begin, int64_t end, int64_t grain,
                                       c10::function_ref<void(int64_t, int64_t)> body);

}  // namespace lamplighter

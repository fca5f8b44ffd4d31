#pragma once

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstdint>

#include "kernels/common/isa.h"

// What the CPU operators over rows of a vocabulary share.
namespace lamplighter {

// `bytes` bytes of scratch memory for each thread of a parallel loop.
class ThreadScratch {
 public:
  explicit ThreadScratch(size_t bytes)
      : bytes_(bytes), memory_(at::empty({at::get_num_threads(), static_cast<int64_t>(bytes)}, at::kByte)) {}

  void* get() const {
    return static_cast<char*>(memory_.mutable_data_ptr()) +
           static_cast<size_t>(at::get_thread_num()) * bytes_;
  }

 private:
  size_t bytes_;
  at::Tensor memory_;
};

// Calls rows(begin, end) for parts of [0, count) on several threads.
template <class Rows>
void for_row_parts(int64_t count, int64_t vocabulary, Rows rows) {
  constexpr int64_t kElementsPerTask = 16384;  // below that a thread costs more than it saves
  at::parallel_for(0, count, std::max<int64_t>(1, kElementsPerTask / vocabulary), rows);
}

// The kernel for active_isa().
template <class Kernel>
Kernel for_isa(Kernel portable, Kernel avx2, Kernel avx512) {
  const Isa isa = active_isa();
  return isa == Isa::kAvx512 ? avx512 : isa == Isa::kAvx2 ? avx2 : portable;
}

}  // namespace lamplighter

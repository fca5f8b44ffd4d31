#include "kernels/common/large_pages.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>

namespace lamplighter {

at::Tensor empty_in_large_pages(at::IntArrayRef shape, const at::TensorOptions& options) {
  constexpr std::size_t kHugePage = std::size_t{2} << 20;
  const std::size_t bytes =
      static_cast<std::size_t>(c10::multiply_integers(shape)) * options.dtype().itemsize();
  if (bytes < kHugePage) return at::empty(shape, options);
  void* memory = std::aligned_alloc(kHugePage, (bytes + kHugePage - 1) / kHugePage * kHugePage);
  TORCH_CHECK(memory != nullptr, "out of memory for ", bytes, " bytes of weights");
#if defined(MADV_HUGEPAGE)
  madvise(memory, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);
#endif
  return at::from_blob(
      memory, shape, [](void* p) { std::free(p); }, options);
}

}  // namespace lamplighter

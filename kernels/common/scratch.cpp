#include "kernels/common/scratch.h"

#include <c10/util/Exception.h>

#include <cstdlib>
#include <memory>

namespace lamplighter {

void* thread_scratch(size_t bytes) {
  struct Free {
    void operator()(void* p) const { std::free(p); }
  };
  thread_local std::unique_ptr<void, Free> memory;
  thread_local size_t size = 0;
  if (bytes > size) {
    const size_t rounded = (bytes + 4095) / 4096 * 4096;
    memory.reset();
    size = 0;
    memory.reset(std::aligned_alloc(64, rounded));
    TORCH_CHECK(memory != nullptr, "out of memory for ", rounded, " bytes of scratch");
    size = rounded;
  }
  return memory.get();
}

}  // namespace lamplighter

#include "base/memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <vector>

namespace lamplighter {
namespace {

constexpr std::size_t kBlocks = 1024, kBlock = 64 << 10;

std::int64_t resident_bytes() {
  std::int64_t all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

// Every other block stays allocated, like image records between tensors.
TEST(ReleaseFreeMemory, GivesBackWhatLiesBetweenBlocks) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers have an allocator of their own";
#endif
  std::vector<void*> blocks;
  for (std::size_t i = 0; i < kBlocks; ++i) {
    blocks.push_back(std::malloc(kBlock));
    std::memset(blocks.back(), 1, kBlock);
  }
  const std::int64_t before = resident_bytes();
  for (std::size_t i = 0; i < kBlocks; i += 2) std::free(blocks[i]);
  release_free_memory();
  EXPECT_LT(resident_bytes(), before - static_cast<std::int64_t>(kBlocks / 2 * kBlock) * 3 / 4);
  for (std::size_t i = 1; i < kBlocks; i += 2) std::free(blocks[i]);
}

}  // namespace
}  // namespace lamplighter

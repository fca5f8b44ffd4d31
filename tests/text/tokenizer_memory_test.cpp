#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

#include "lamplighter/bundle.h"
#include "text/t5_tokenizer.h"

// Loads a tokenizer while memory runs out at every possible allocation. Cleanup must free what exists and
// nothing else.
namespace {

std::atomic<std::int64_t> allocations_left{-1};  // -1: unlimited

void* allocate(std::size_t bytes) {
  if (allocations_left > 0 && --allocations_left == 0) throw std::bad_alloc();
  void* memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return std::memset(memory, 0xAB, bytes);  // uninitialised memory must not look like null pointers
}

}  // namespace

void* operator new(std::size_t bytes) {
  return allocate(bytes);
}
void* operator new[](std::size_t bytes) {
  return allocate(bytes);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t /*bytes*/) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t /*bytes*/) noexcept {
  std::free(memory);
}

namespace lamplighter {
namespace {

TEST(TokenizerMemoryTest, AnyAllocationMayFail) {
  const std::string folder = LAMPLIGHTER_SOURCE_DIR "/models/demo/bundle";
  const TokenizerEntry settings = read_manifest(folder).tokenizer.value();
  const auto loads = [&](std::int64_t allocations) {
    allocations_left = allocations;
    try {
      const T5Tokenizer tokenizer(folder + "/spiece.model", settings);
      allocations_left = -1;
      return true;
    } catch (const std::bad_alloc&) {
      allocations_left = -1;
      return false;
    }
  };
  ASSERT_TRUE(loads(-1));  // one-time allocations of libraries
  std::int64_t allocations = 1;
  while (!loads(allocations)) ++allocations;
  EXPECT_GT(allocations, 500);
}

}  // namespace
}  // namespace lamplighter

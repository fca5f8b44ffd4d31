#include "kernels/common/parallel.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

namespace lamplighter {
namespace {

class ParallelTest : public ::testing::Test {
 protected:
  ~ParallelTest() override { at::set_num_threads(before_); }

 private:
  int before_ = at::get_num_threads();
};

// How often each number was in a part.
std::vector<int> counts_of(int64_t size, int64_t grain) {
  std::vector<std::atomic<int>> counts(static_cast<size_t>(size));
  parallel_for(0, size, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) ++counts[static_cast<size_t>(i)];
  });
  return {counts.begin(), counts.end()};
}

TEST_F(ParallelTest, EveryNumberIsInOnePart) {
  for (const int threads : {1, 2, 3, 7}) {
    at::set_num_threads(threads);
    for (const int64_t size : {1, 2, 3, 5, 8, 100, 1001}) {
      for (const int64_t grain : {0, 1, 3, 1000}) {
        for (const int count : counts_of(size, grain)) ASSERT_EQ(count, 1) << threads << " " << size;
      }
    }
  }
  EXPECT_TRUE(counts_of(0, 1).empty());
}

TEST_F(ParallelTest, PartsAreThoseOfTorch) {
  at::set_num_threads(4);
  std::mutex mutex;
  std::set<std::pair<int64_t, int64_t>> parts, expected{{5, 8}, {8, 11}, {11, 14}, {14, 15}};
  parallel_for(5, 15, 1, [&](int64_t begin, int64_t end) {
    const std::lock_guard lock(mutex);
    parts.emplace(begin, end);
  });
  EXPECT_EQ(parts, expected);
}

TEST_F(ParallelTest, PartsRunOnSeveralThreads) {
  at::set_num_threads(2);
  std::atomic<bool> other{false};
  // The first part waits for the second, which only another thread can run meanwhile.
  parallel_for(0, 2, 1, [&](int64_t begin, int64_t /*end*/) {
    if (begin == 1) other = true;
    while (!other) std::this_thread::yield();
  });
  EXPECT_TRUE(other);
}

TEST_F(ParallelTest, WithinAPartItIsSerial) {
  at::set_num_threads(3);
  std::atomic<int> parts{0};
  parallel_for(0, 3, 1, [&](int64_t, int64_t) { parallel_for(0, 8, 1, [&](int64_t, int64_t) { ++parts; }); });
  EXPECT_EQ(parts, 3);
}

TEST_F(ParallelTest, ThrowsWhatAPartThrows) {
  at::set_num_threads(3);
  for (const int64_t bad : {0, 1, 2}) {
    const auto run = [&] {
      parallel_for(0, 3, 1, [&](int64_t begin, int64_t) {
        if (begin == bad) throw std::runtime_error("bad part");
      });
    };
    EXPECT_THROW(run(), std::runtime_error);
  }
  for (const int count : counts_of(9, 1)) EXPECT_EQ(count, 1) << "it goes on";
}

TEST_F(ParallelTest, ManyCallersAndPausesOfAllLengths) {
  std::vector<std::thread> callers;
  std::atomic<int> wrong{0};
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&, caller] {
      at::set_num_threads(3);
      for (int round = 0; round < 2000; ++round) {
        for (const int count : counts_of(1 + round % 17, 1)) wrong += count != 1;
        // Now and then as long as threads look for work, and longer.
        if (round % 50 == caller) std::this_thread::sleep_for(std::chrono::microseconds(round));
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace lamplighter

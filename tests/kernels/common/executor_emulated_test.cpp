#include "tests/kernels/common/emulated_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>
#include <type_traits>
#include <vector>

#include "kernels/common/cpu_executor.h"
#include "kernels/common/cuda/executor.h"

// The executor of CUDA blocks on an emulated device against the one of the CPU.
namespace lamplighter::test {
namespace {

constexpr int kLengths[] = {1, 2, 31, 32, 33, 100, 255, 256, 257, 1000, 1023, 4097};

struct Here {};

template <class Size>
class BlockExecutorTest : public ::testing::Test {
 protected:
  static constexpr int kThreads = Size::value;

  // f(executor) in every thread of a block, under several orders; `prepare` before each.
  template <class Prepare, class F>
  void on_block(Prepare prepare, F f) {
    for (const unsigned order : {0U, 1U, 2U}) {
      emulated::shuffle() = order;
      BlockStorage storage;
      std::memset(&storage, emulated::kPoison, sizeof(storage));
      prepare();
      emulated::launch({1}, {kThreads}, 0, [&] {
        BlockExecutor<kThreads> executor(&storage);
        f(executor);
      });
    }
    emulated::shuffle() = 0;
  }

  std::vector<int> random_values(int n, int most) {
    std::vector<int> values(static_cast<size_t>(n));
    for (int& value : values) value = std::uniform_int_distribution<int>(0, most)(rng_);
    return values;
  }

  CpuExecutor<Here> cpu() { return CpuExecutor<Here>(cells_.data()); }

  std::mt19937 rng_{11};
  std::vector<double> cells_ = std::vector<double>(kExecutorCells);
};

using Sizes = ::testing::Types<std::integral_constant<int, 64>, std::integral_constant<int, 256>,
                               std::integral_constant<int, 512>, std::integral_constant<int, 1024>>;
TYPED_TEST_SUITE(BlockExecutorTest, Sizes);

TYPED_TEST(BlockExecutorTest, ForEachVisitsEveryIndexOnceAndEndsTogether) {
  for (const int n : kLengths) {
    std::vector<int> visits, sums;
    this->on_block(
        [&] {
          visits.assign(static_cast<size_t>(n), 0);
          sums.assign(TestFixture::kThreads, 0);
        },
        [&](auto executor) {
          executor.for_each(n, [&](int i) { ++visits[static_cast<size_t>(i)]; });
          sums[threadIdx.x] = std::accumulate(visits.begin(), visits.end(), 0);
        });
    EXPECT_EQ(visits, std::vector<int>(static_cast<size_t>(n), 1));
    EXPECT_EQ(sums, std::vector<int>(TestFixture::kThreads, n));
  }
}

TYPED_TEST(BlockExecutorTest, ReduceGivesAllThreadsTheSameBitsOfTheSum) {
  for (const int n : kLengths) {
    std::vector<double> values(static_cast<size_t>(n));
    for (double& value : values) value = std::normal_distribution<double>()(this->rng_);
    const double expected = std::accumulate(values.begin(), values.end(), 0.0);
    std::vector<double> got(TestFixture::kThreads);
    double first = 0;
    bool known = false;
    this->on_block([] {},
                   [&](auto executor) {
                     got[threadIdx.x] = executor.reduce(
                         n, 0.0, [&](int i) { return values[static_cast<size_t>(i)]; },
                         [](double a, double b) { return a + b; });
                     if (!known) first = got[threadIdx.x];
                     known = true;
                   });
    EXPECT_NEAR(first, expected, 1e-9) << n;
    EXPECT_EQ(got, std::vector<double>(TestFixture::kThreads, first)) << n;
  }
}

TYPED_TEST(BlockExecutorTest, ArgmaxIsTheFirstOfTheLargest) {
  for (const int n : kLengths) {
    const std::vector<int> values = this->random_values(n, 40);
    const auto map = [&](int i) { return static_cast<float>(values[static_cast<size_t>(i)]); };
    std::vector<int> got(TestFixture::kThreads);
    this->on_block([] {}, [&](auto executor) { got[threadIdx.x] = executor.argmax(n, map); });
    EXPECT_EQ(got, std::vector<int>(TestFixture::kThreads, this->cpu().argmax(n, map))) << n;
  }
}

TYPED_TEST(BlockExecutorTest, ArgmaxBehindNaNIsInside) {
  for (const int n : kLengths) {
    const auto map = [](int i) { return i == 0 ? std::nanf("") : static_cast<float>(i); };
    std::vector<int> got(TestFixture::kThreads, -1);
    this->on_block([] {}, [&](auto executor) { got[threadIdx.x] = executor.argmax(n, map); });
    EXPECT_EQ(got, std::vector<int>(TestFixture::kThreads, 0)) << n;
    EXPECT_EQ(this->cpu().argmax(n, map), 0) << n;
  }
}

TYPED_TEST(BlockExecutorTest, ScanFindsWhereTheSumPassesTheLimit) {
  for (const int n : kLengths) {
    const std::vector<int> values = this->random_values(n, 5);
    const int sum = std::accumulate(values.begin(), values.end(), 0);
    const auto map = [&](int i) { return static_cast<double>(values[static_cast<size_t>(i)]); };
    for (const double limit : {0.0, 1.0, sum / 3.0, sum - 1.0, double(sum), sum + 7.0}) {
      if (limit < 0) continue;
      const Prefix<double> expected = this->cpu().scan(n, limit, map);
      std::vector<Prefix<double>> got(TestFixture::kThreads);
      this->on_block([] {}, [&](auto executor) { got[threadIdx.x] = executor.scan(n, limit, map); });
      for (const Prefix<double>& found : got) {
        ASSERT_EQ(found.index, expected.index) << n << " " << limit;
        ASSERT_EQ(found.before, expected.before) << n << " " << limit;
      }
    }
  }
}

TYPED_TEST(BlockExecutorTest, HistogramCountsAsTheCpuDoes) {
  for (const int n : kLengths) {
    const std::vector<int> values = this->random_values(n, 64);
    const auto bin = [&](int i) { return values[static_cast<size_t>(i)] - 1; };
    const auto weight = [&](int i) { return uint32_t(i % 3); };
    std::vector<uint32_t> expected(64, 0);
    this->cpu().histogram(n, expected.data(), bin, weight);
    std::vector<uint32_t> got;
    this->on_block([&] { got.assign(64, 0); },
                   [&](auto executor) { executor.histogram(n, got.data(), bin, weight); });
    EXPECT_EQ(got, expected) << n;
  }
}

TYPED_TEST(BlockExecutorTest, CompactListsWhatIsKeptInOrder) {
  for (const int n : kLengths) {
    const std::vector<int> values = this->random_values(n, 2);
    const auto keep = [&](int i) { return values[static_cast<size_t>(i)] == 0; };
    std::vector<int> expected(static_cast<size_t>(n) + 16, -1);
    expected.resize(static_cast<size_t>(this->cpu().compact(n, keep, expected.data())));
    std::vector<int> got, counts(TestFixture::kThreads);
    this->on_block([&] { got.assign(static_cast<size_t>(n), -1); },
                   [&](auto executor) { counts[threadIdx.x] = executor.compact(n, keep, got.data()); });
    EXPECT_EQ(counts, std::vector<int>(TestFixture::kThreads, static_cast<int>(expected.size()))) << n;
    got.resize(expected.size());
    EXPECT_EQ(got, expected) << n;
  }
}

std::string failure_of(int threads, size_t shared_bytes, const std::function<void()>& kernel) {
  try {
    emulated::launch({1}, {static_cast<unsigned>(threads)}, shared_bytes, kernel);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

void part_at_a_barrier() {
  if (threadIdx.x == 33) {
    __syncthreads();
  } else {
    __syncthreads();
  }
}

TEST(EmulatedDeviceTest, FindsThreadsThatWaitAtDifferentPlaces) {
  EXPECT_EQ(failure_of(64, 0, [] { __syncthreads(); }), "");
  EXPECT_THAT(failure_of(64, 0,
                         [] {
                           if (threadIdx.x < 40) __syncthreads();
                         }),
              ::testing::HasSubstr("thread 0 waits at a barrier in executor_emulated_test.cpp:"));
  EXPECT_THAT(failure_of(64, 0, part_at_a_barrier), ::testing::HasSubstr("thread 33 waits at a barrier"));
  EXPECT_THAT(failure_of(32, 0,
                         [] {
                           if (threadIdx.x != 5) __syncwarp();
                         }),
              ::testing::HasSubstr("thread 0 waits for its warp"));
  EXPECT_EQ(failure_of(64, 0, [] { __syncthreads(); }), "");
}

TEST(EmulatedDeviceTest, FindsAccessesOutsideTheSharedMemory) {
  alignas(16) static char source[16] = {};
  EXPECT_EQ(failure_of(1, 64, [] { copy_async(shared_memory() + 48, source, true); }), "");
  EXPECT_EQ(failure_of(1, 64, [] { copy_async(shared_memory() + 64, source, true); }),
            "thread 0 leaves the shared memory");
  EXPECT_EQ(failure_of(1, 64, [] { copy_async(shared_memory() + 8, source, true); }),
            "thread 0 uses an address that is not aligned");
  EXPECT_EQ(failure_of(1, 64, [] { shared_memory()[64] = 0; }), "a thread wrote outside the shared memory");
}

TEST(EmulatedDeviceTest, CopiesLandWhenTheyAreWaitedFor) {
  alignas(16) static float source[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  float early = 0, first = 0, second = 0;
  emulated::launch({1}, {1}, 64, [&] {
    auto* memory = reinterpret_cast<float*>(shared_memory());
    copy_async(memory, source, true);
    commit_copies();
    copy_async(memory + 4, source + 4, true);
    commit_copies();
    early = memory[0];
    wait_for_copies<1>();
    first = memory[0];
    second = memory[4];
  });
  EXPECT_TRUE(std::isnan(early));
  EXPECT_EQ(first, 1);
  EXPECT_TRUE(std::isnan(second));
}

}  // namespace
}  // namespace lamplighter::test

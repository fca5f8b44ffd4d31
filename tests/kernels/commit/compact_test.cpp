#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <numeric>

#include "kernels/ops.h"
#include "tests/kernels/common/operators.h"

namespace lamplighter::test {
namespace {

using ::testing::HasSubstr;

struct CompactCall {
  at::Tensor cache, lengths, path, count;

  void run() { ops::compact_cache(cache, lengths, path, count); }
};

// `most` rising rows of a tree behind its root.
std::vector<int64_t> random_path(std::mt19937& rng, int64_t nodes, int64_t most) {
  std::vector<int64_t> drafted(static_cast<size_t>(nodes - 1));
  std::iota(drafted.begin(), drafted.end(), 1);
  std::vector<int64_t> path = {0};
  std::sample(drafted.begin(), drafted.end(), std::back_inserter(path), most, rng);
  return path;
}

// Counts from -1 to the depth of the tree; what the operator must not read is far outside the cache.
CompactCall random_call(std::mt19937& rng, at::ScalarType dtype) {
  CompactCall call;
  const int64_t images = pick(rng, 1, 4), sequences = images * pick(rng, 1, 2), nodes = pick(rng, 1, 64);
  const int64_t width = pick(rng, 1, std::min<int64_t>(nodes, 12)), longest = pick(rng, 0, 40);
  constexpr int64_t kDims[] = {1, 3, 6, 16, 64, 100};
  call.cache = random_tensor(
      rng, {pick(rng, 1, 3), 2, sequences, pick(rng, 1, 3), longest + nodes, kDims[pick(rng, 0, 5)]}, dtype);
  call.lengths = integers({sequences}, [&](int64_t) { return pick(rng, 0, longest); });
  call.path = integers({images, width}, [](int64_t) { return -1000; });
  call.count = integers({images}, [&](int64_t) { return pick(rng, -1, width - 1); });
  for (int64_t i = 0; i < images; ++i) {
    const int64_t count = call.count[i].item<int64_t>();
    const std::vector<int64_t> path = random_path(rng, nodes, std::max<int64_t>(count, 0));
    for (int64_t j = 0; j <= count; ++j) call.path[i][j] = path[static_cast<size_t>(j)];
  }
  return call;
}

// The definition: every row is read from the cache as it was.
at::Tensor reference(const CompactCall& call) {
  at::Tensor moved = call.cache.clone();
  const int64_t pairs = call.lengths.size(0) / call.count.size(0);
  for (int64_t s = 0; s < call.lengths.size(0); ++s) {
    const int64_t length = call.lengths[s].item<int64_t>(), image = s / pairs;
    for (int64_t j = 1; j <= call.count[image].item<int64_t>(); ++j) {
      const int64_t from = length + call.path[image][j].item<int64_t>();
      moved.select(2, s).select(3, length + j).copy_(call.cache.select(2, s).select(3, from));
    }
  }
  return moved;
}

class CompactTest : public ::testing::TestWithParam<at::ScalarType> {
 protected:
  std::mt19937 rng_{11};
};

TEST_P(CompactTest, MovesTheAcceptedRows) {
  int64_t moved = 0;
  for (int trial = 0; trial < 200; ++trial) {
    CompactCall call = random_call(rng_, GetParam());
    const at::Tensor before = call.cache.clone(), expected = reference(call);
    call.run();
    ASSERT_TRUE(same_bits(call.cache, expected)) << "trial " << trial;
    moved += same_bits(before, expected) ? 0 : 1;
  }
  EXPECT_GT(moved, 100);
}

// All of a chain behind a gap: each row is overwritten by the next one.
TEST_P(CompactTest, RowsMayOverlap) {
  CompactCall call;
  call.cache = random_tensor(rng_, {2, 2, 2, 3, 20, 64}, GetParam());
  call.lengths = integers({2}, [](int64_t s) { return 3 * s; });
  call.path = integers({1, 16}, [](int64_t j) { return j == 0 ? 0 : j + 1; });
  call.count = integers({1}, [](int64_t) { return 15; });
  const at::Tensor expected = reference(call);
  call.run();
  EXPECT_TRUE(same_bits(call.cache, expected));
}

TEST_P(CompactTest, ThreadsDoNotChangeBits) {
  CompactCall call;
  call.cache = random_tensor(rng_, {24, 2, 2, 8, 40, 64}, GetParam());
  call.lengths = integers({2}, [](int64_t) { return 9; });
  call.path = integers({1, 8}, [](int64_t j) { return 4 * j; });
  call.count = integers({1}, [](int64_t) { return 7; });
  const at::Tensor expected = reference(call);
  at::set_num_threads(2);
  call.run();
  at::set_num_threads(1);
  EXPECT_TRUE(same_bits(call.cache, expected));
}

TEST_P(CompactTest, CudaMovesTheSameRows) {
  if (!at::globalContext().hasCUDA()) GTEST_SKIP() << "no CUDA device";
  for (int trial = 0; trial < 100; ++trial) {
    CompactCall call = random_call(rng_, GetParam());
    const at::Tensor expected = reference(call);
    for (at::Tensor* tensor : {&call.cache, &call.lengths, &call.path, &call.count}) {
      *tensor = tensor->to(at::kCUDA);
    }
    call.run();
    ASSERT_TRUE(same_bits(call.cache.cpu(), expected)) << "trial " << trial;
  }
}

INSTANTIATE_TEST_SUITE_P(, CompactTest, ::testing::Values(at::kFloat, at::kBFloat16, at::kHalf),
                         [](const auto& test) { return std::string(c10::toString(test.param)); });

class CompactErrors : public ::testing::Test {
 protected:
  std::string failure(const std::function<void(CompactCall&)>& spoil) {
    std::mt19937 rng(1);
    CompactCall call;
    call.cache = random_tensor(rng, {2, 2, 4, 3, 20, 8}, at::kFloat);
    call.lengths = integers({4}, [](int64_t) { return 10; });
    call.path = integers({2, 4}, [](int64_t i) { return i % 4 * 3; });
    call.count = integers({2}, [](int64_t) { return 3; });
    spoil(call);
    return message_of([&] { call.run(); });
  }
};

TEST_F(CompactErrors, Shapes) {
  EXPECT_EQ(failure([](CompactCall&) {}), "no error");
  EXPECT_THAT(failure([](CompactCall& c) { c.cache = c.cache[0]; }),
              HasSubstr("compact_cache: cache has shape [2, 4, 3, 20, 8], expected [-1, 2, -1, -1, -1, -1]"));
  EXPECT_THAT(failure([](CompactCall& c) { c.lengths = c.lengths.narrow(0, 0, 2); }),
              HasSubstr("compact_cache: lengths has shape [2], expected [4]"));
  EXPECT_THAT(failure([](CompactCall& c) { c.path = c.path.narrow(0, 0, 1); }),
              HasSubstr("compact_cache: cache holds 4 sequences, expected 1 or 2 for 1 images"));
  EXPECT_THAT(failure([](CompactCall& c) { c.count = c.count.narrow(0, 0, 1); }),
              HasSubstr("compact_cache: count has shape [1], expected [2]"));
  EXPECT_THAT(failure([](CompactCall& c) { c.path = c.path.to(at::kInt); }),
              HasSubstr("compact_cache: path has dtype Int, expected Long"));
  EXPECT_THAT(
      failure([](CompactCall& c) { c.cache = c.cache.to(at::kDouble); }),
      HasSubstr("compact_cache: cache has dtype Double, expected float32, bfloat16, float16 or int8"));
  EXPECT_THAT(failure([](CompactCall& c) { c.cache = c.cache.transpose(0, 1); }),
              HasSubstr("expected a contiguous tensor"));
}

TEST_F(CompactErrors, Contents) {
  EXPECT_THAT(failure([](CompactCall& c) { c.count[1] = 4; }),
              HasSubstr("compact_cache: count of image 1 is 4, expected -1..3"));
  EXPECT_THAT(failure([](CompactCall& c) { c.count[0] = -2; }), HasSubstr("count of image 0 is -2"));
  EXPECT_THAT(failure([](CompactCall& c) { c.path[1][0] = 1; }),
              HasSubstr("compact_cache: path of image 1 has row 1 at index 0, expected 0"));
  EXPECT_THAT(failure([](CompactCall& c) { c.path[0][2] = 3; }),
              HasSubstr("compact_cache: path of image 0 has row 3 at index 2, expected rising rows"));
  EXPECT_THAT(failure([](CompactCall& c) { c.lengths[3] = 11; }),
              HasSubstr("compact_cache: row 9 behind the 11 of sequence 3 is outside the cache of 20 rows"));
  EXPECT_THAT(failure([](CompactCall& c) { c.lengths[0] = -1; }), HasSubstr("row 9 behind the -1"));
}

}  // namespace
}  // namespace lamplighter::test

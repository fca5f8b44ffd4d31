#include "draft/lookup/lookahead.h"

#include <ATen/Parallel.h>
#include <ATen/ops/equal.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "draft/lookup/ngram_pool.h"
#include "tests/decode/loop_distribution.h"

namespace lamplighter::test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Tail = std::vector<std::int64_t>;

struct Pool {
  std::vector<std::int64_t> numbers = std::vector<std::int64_t>(5 * 2 * 2, -1);
  NgramPool view{numbers.data(), 5, 2, 2};

  void add(std::int64_t token, const Tail& tail) { view.add(token, tail.data()); }
};

TEST(NgramPool, KeepsTheNewestTailsAndNoneTwice) {
  Pool pool;
  EXPECT_THAT(pool.view.of(1), IsEmpty());
  pool.add(1, {2, 3});
  pool.add(1, {4, 4});
  pool.add(2, {0, 0});
  EXPECT_THAT(pool.view.of(1), ElementsAre(Tail{2, 3}, Tail{4, 4}));
  pool.add(1, {2, 3});
  EXPECT_THAT(pool.view.of(1), ElementsAre(Tail{4, 4}, Tail{2, 3})) << "a repeated one is the newest";
  pool.add(1, {2, 3});
  EXPECT_THAT(pool.view.of(1), ElementsAre(Tail{4, 4}, Tail{2, 3}));
  pool.add(1, {1, 0});
  EXPECT_THAT(pool.view.of(1), ElementsAre(Tail{2, 3}, Tail{1, 0})) << "the oldest makes room";
  EXPECT_THAT(pool.view.of(2), ElementsAre(Tail{0, 0}));
  pool.add(-1, {1, 1});
  pool.add(5, {1, 1});
  EXPECT_THAT(pool.view.of(5), IsEmpty());
}

TEST(NgramPool, TakesTheRunsOfAnImage) {
  Pool pool;
  const Tail image{0, 1, 2, 0, 3, 4};
  pool.view.add_runs(image.data(), 0, 4);
  EXPECT_THAT(pool.view.of(0), ElementsAre(Tail{1, 2}));
  EXPECT_THAT(pool.view.of(1), ElementsAre(Tail{2, 0}));
  pool.view.add_runs(image.data(), 4, 6);
  EXPECT_THAT(pool.view.of(0), ElementsAre(Tail{1, 2}, Tail{3, 4}));
  EXPECT_THAT(pool.view.of(2), ElementsAre(Tail{0, 3}));
}

class LookaheadTest : public ::testing::Test {
 protected:
  void SetUp() override { at::set_num_threads(1); }

  static Method method(std::int64_t tail) {
    Method method;
    method.draft_method = &make_lookahead;
    method.tree.reset();
    method.tail = tail;
    method.verify.sampled = false;
    return method;
  }

  static SyntheticShape shape() {
    SyntheticShape shape;
    shape.vocabulary = 4;
    shape.rows = 4;
    shape.columns = 5;
    return shape;
  }
};

TEST_F(LookaheadTest, GreedyTokensAreThoseOfAutoregression) {
  for (const bool row_ends : {false, true}) {
    SyntheticShape ends = shape();
    ends.row_ends = row_ends;
    const Toy toy(ends);
    std::vector<DecodeRequest> requests(4);
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      requests[seed].sampling.temperature = 0;
      requests[seed].seed = seed;
    }
    const Prompts prompts = toy.prompts({0, 1, 2, 3}, true);
    const at::Tensor expected = decode(toy.models(), {}, prompts, requests, toy.grid());
    for (const std::int64_t tail : {1, 2, 4}) {
      std::int64_t cycles = 0;
      const at::Tensor codes = decode(toy.models(), method(tail), prompts, requests, toy.grid(),
                                      [&](const Report&) { return ++cycles > 0; });
      EXPECT_TRUE(at::equal(codes, expected)) << tail;
      EXPECT_LT(cycles, toy.grid().tokens() - 1) << tail;
    }
  }
}

TEST_F(LookaheadTest, ImagesOfABatchAreThoseSampledAlone) {
  const Toy toy(shape());
  std::vector<DecodeRequest> all(4);
  for (std::uint64_t seed = 0; seed < 4; ++seed) all[seed].seed = seed;
  const at::Tensor together =
      decode(toy.models(), method(3), toy.prompts({0, 1, 2, 3}, true), all, toy.grid());
  for (std::int64_t image = 0; image < 4; ++image) {
    const at::Tensor alone = decode(toy.models(), method(3), toy.prompts({image}, true),
                                    {all[static_cast<std::size_t>(image)]}, toy.grid());
    EXPECT_TRUE(at::equal(alone, together.narrow(0, image, 1))) << image;
  }
}

TEST_F(LookaheadTest, ImagesFollowTheDistributionOfTheTarget) {
  const Toy toy(run_shape());
  const std::int64_t images = distribution_images(std::int64_t{1} << 14);
  std::int64_t accepted = 0;
  const JointDistribution counts =
      counted_distribution(toy, run_sampling(), images, [&](const Prompts& prompts, const auto& requests) {
        return decode(toy.models(), method(2), prompts, requests, toy.grid(), [&](const Report& report) {
          for (const ImageReport& image : report.images) accepted += image.accepted;
          return true;
        });
      });
  EXPECT_GT(accepted, images / 5);
  EXPECT_TRUE(fits(lossless_distribution(toy, run_sampling()), counts));
}

TEST_F(LookaheadTest, KeepsTheDistributionWhereSlotsAreRefilledAndRowsEnd) {
  const Toy toy(run_shape(true));
  SamplingOptions sampling = run_sampling();
  sampling.cfg_interval = 0;
  EXPECT_TRUE(fits(lossless_distribution(toy, sampling),
                   distribution_of_slots(toy, method(2), sampling, distribution_images(1 << 13), 48)));
}

}  // namespace
}  // namespace lamplighter::test

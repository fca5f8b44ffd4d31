#include "pipeline/drawing/continuous_session.h"

#include <ATen/ops/allclose.h>
#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <set>

#include "lamplighter/error.h"
#include "tests/continuous/toy.h"

namespace lamplighter::test {
namespace {

constexpr std::uint64_t kWild = 13;  // of a picture whose numbers become infinite
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Requests that come by and by, and what becomes of them.
class ToyFeed : public Feed {
 public:
  struct Coming {
    std::uint64_t number;
    int round;  // of the first one in work, after which it is there
    Request request;
  };

  std::deque<Coming> coming;
  std::map<std::uint64_t, int> leaves;  // rounds of its own after which nobody wants it
  std::map<std::uint64_t, Result> drawn;
  std::map<std::uint64_t, std::string> failures;
  std::map<std::uint64_t, std::int64_t> tokens;
  std::map<std::uint64_t, int> rounds;

  std::optional<Entry> next(const Fits& fits, bool idle) override {
    if (coming.empty() || (!idle && (round_ < coming.front().round || !fits(coming.front().request))))
      return std::nullopt;
    const Coming first = coming.front();
    coming.pop_front();
    return Entry{first.number, first.request};
  }
  bool is_wanted(std::uint64_t number) override {
    if (number == 1) ++round_;
    const auto found = leaves.find(number);
    return ++rounds[number] <= (found == leaves.end() ? 1000 : found->second);
  }
  void progress(std::uint64_t number, const Grid&, const std::vector<std::int32_t>& codes,
                std::int64_t committed) override {
    EXPECT_TRUE(codes.empty());
    tokens[number] += committed;
  }
  void picture(std::uint64_t number, Result&& result) override {
    const std::lock_guard lock(mutex_);
    drawn.emplace(number, std::move(result));
  }
  void failed(std::uint64_t number, const Error& error) override {
    const std::lock_guard lock(mutex_);
    failures[number] = error.what();
  }

 private:
  int round_ = 0;
  std::mutex mutex_;
};

struct ContinuousSessionTest : ::testing::Test {
  ContinuousSessionTest() {
    grid.rows = grid.columns = 4;
    run = {&target, &drafter, {16, 2, 3, 10}, cspd("exact", 3)};
  }

  ToyFeed::Coming request(std::uint64_t number, int round = 0) const {
    ToyFeed::Coming coming{number, round, {}};
    coming.request.seed = number;
    coming.request.class_id = 3;
    return coming;
  }

  // Begins with the first that comes.
  std::optional<FedRequest> draw(int slots) {
    const FeedSession::Calls calls{[&](const Request& request) {
                                     ResolvedRequest resolved;
                                     resolved.grid = &grid;
                                     resolved.sampling.cfg_scale = request.seed == kWild ? kInfinity : 1.5F;
                                     resolved.seed = request.seed;
                                     resolved.class_id = request.class_id;
                                     resolved.method = request.method ? 1 : 0;
                                     return resolved;
                                   },
                                   [](const Request&, ResolvedRequest&) {}};
    const auto paint = [](const at::Tensor& latents) {
      Image image;
      const auto* bytes = reinterpret_cast<const std::uint8_t*>(latents.const_data_ptr<float>());
      image.pixels.assign(bytes, bytes + latents.nbytes());
      return image;
    };
    std::optional<FedRequest> first = FeedSession::take(
        feed, [](const Request&) { return true; }, true, calls);
    return ContinuousSession({manifest, run, slots, paint}, feed, std::move(*first), calls).run();
  }

  // Latents [C, L] of a picture alone.
  at::Tensor alone(std::uint64_t seed) const {
    ContinuousRequest request;
    request.class_id = 3;
    request.seed = seed;
    request.scales.assign(16, 1.5F);
    return test::draw({target, drafter, run.shape, run.method}, {request}, 1)[0].latents.t();
  }

  void expect_drawn(std::uint64_t number) {
    ASSERT_EQ(feed.drawn.count(number), 1U) << number;
    const Result& result = feed.drawn.at(number);
    at::Tensor latents = at::zeros({2, 16});
    ASSERT_EQ(result.image.pixels.size(), latents.nbytes());
    std::copy(result.image.pixels.begin(), result.image.pixels.end(),
              reinterpret_cast<std::uint8_t*>(latents.mutable_data_ptr<float>()));
    EXPECT_TRUE(at::allclose(latents, alone(number), 0, 1e-5)) << number;
    EXPECT_EQ(result.seed, number);
    EXPECT_EQ(feed.tokens[number], 16);
  }

  static ToyChain chain(ToyChain chain) {
    chain.e = 0.8, chain.of_class = 0.2, chain.of_position = 0.5;
    return chain;
  }

  ToyModel target{chain(toy_target())}, drafter{chain(toy_draft('B'))};
  Manifest manifest;
  Grid grid;
  ContinuousRun run;
  ToyFeed feed;
};

TEST_F(ContinuousSessionTest, PicturesJoinThoseInWork) {
  feed.coming = {request(1), request(2), request(3, 2), request(4, 3)};
  EXPECT_FALSE(draw(3));
  for (std::uint64_t number = 1; number <= 4; ++number) expect_drawn(number);
  EXPECT_EQ(feed.drawn.at(1).statistics.batch, 3);
  EXPECT_EQ(feed.drawn.at(3).statistics.batch, 3);
  EXPECT_TRUE(feed.failures.empty());
}

TEST_F(ContinuousSessionTest, WhoLeavesFreesTheSlotAtOnce) {
  feed.coming = {request(1), request(2)};
  feed.leaves[1] = 2;
  EXPECT_FALSE(draw(1));
  EXPECT_EQ(feed.rounds[1], 3);
  EXPECT_EQ(feed.drawn.count(1), 0U);
  expect_drawn(2);
  EXPECT_TRUE(feed.failures.empty());
}

TEST_F(ContinuousSessionTest, AnotherKindComesBack) {
  feed.coming = {request(1), request(2)};
  feed.coming.back().request.method = MethodOptions();
  const std::optional<FedRequest> other = draw(2);
  expect_drawn(1);
  EXPECT_EQ(feed.drawn.at(1).statistics.batch, 1);
  ASSERT_TRUE(other);
  EXPECT_EQ(other->number, 2U);
}

TEST_F(ContinuousSessionTest, APictureOfNoNumbersFailsAlone) {
  MethodOptions released = cspd("released", 3, 0.2F, 100);
  released.steps = 12;
  for (const MethodOptions& method :
       {cspd("exact", 3), cspd("exact", 3, 0.3F), cspd("paper", 3), released, passes(6)}) {
    run.method = method;
    feed.drawn.clear();
    feed.failures.clear();
    feed.tokens.clear();
    feed.coming = {request(1), request(kWild), request(2), request(3)};
    EXPECT_FALSE(draw(2));
    EXPECT_EQ(feed.drawn.size(), 3U) << method.method << method.rule;
    EXPECT_EQ(feed.failures.size(), 1U);
    EXPECT_EQ(feed.failures.count(kWild), 1U);
    for (std::uint64_t number = 1; number <= 3; ++number) expect_drawn(number);
  }
}

TEST_F(ContinuousSessionTest, AnErrorIsToldToAllInWork) {
  target.fails = true;
  feed.coming = {request(1), request(2), request(3, 500)};
  EXPECT_FALSE(draw(2));
  EXPECT_EQ(feed.failures.size(), 2U);
  EXPECT_EQ(feed.coming.size(), 1U);
}

}  // namespace
}  // namespace lamplighter::test

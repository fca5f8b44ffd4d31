#include "pipeline/scheduler/scheduler.h"

#include <ATen/ops/allclose.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/stopwatch.h"
#include "lamplighter/error.h"
#include "pipeline/scheduler/continuous_backend.h"
#include "pipeline/scheduler/live_source.h"
#include "pipeline/scheduler/ordered_source.h"
#include "tests/continuous/toy.h"
#include "tests/error_of.h"

namespace lamplighter::test {
namespace {

using ::testing::ElementsAre;

constexpr std::uint64_t kWild = 13;  // seed of an image whose numbers become infinite
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Requests that come one by one, and what becomes of them.
class ToySource : public RequestSource {
 public:
  struct Coming {
    std::uint64_t number;
    int round;  // of image 1, after which it is there
    Request request;
    std::chrono::milliseconds pause{0};  // before it, where the engine is idle
  };

  std::deque<Coming> coming;
  std::map<std::uint64_t, int> leaves;  // rounds of its own after which it is cancelled
  std::map<std::uint64_t, Result> complete_images;
  std::map<std::uint64_t, double> wall_ms;  // from its slot to its result
  std::map<std::uint64_t, std::string> failures;
  std::map<std::uint64_t, std::int64_t> tokens;
  std::map<std::uint64_t, int> rounds;

  std::optional<Entry> next(const Fits& fits, bool is_idle) override {
    if (coming.empty() || (!is_idle && (round_ < coming.front().round || !fits(coming.front().request))))
      return std::nullopt;
    const Coming first = coming.front();
    coming.pop_front();
    if (is_idle) std::this_thread::sleep_for(first.pause);
    const std::lock_guard lock(mutex_);
    clocks_[first.number].lap();
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
  void complete(std::uint64_t number, Result&& result) override {
    const std::lock_guard lock(mutex_);
    wall_ms[number] = clocks_[number].elapsed();
    complete_images.emplace(number, std::move(result));
  }
  void fail(std::uint64_t number, const Error& error) override {
    const std::lock_guard lock(mutex_);
    failures[number] = error.what();
  }

 private:
  int round_ = 0;
  std::map<std::uint64_t, Stopwatch> clocks_;
  std::mutex mutex_;
};

class ToyNetworks : public Networks {
 public:
  std::unique_ptr<Backend> backend(const ResolvedRequest& first, const RunLimits& limits) override {
    slots.push_back(limits.slots);
    const auto decode = [](const at::Tensor& latents) {
      Image image;
      const auto* bytes = reinterpret_cast<const std::uint8_t*>(latents.const_data_ptr<float>());
      image.pixels.assign(bytes, bytes + latents.nbytes());
      return image;
    };
    return std::make_unique<ContinuousBackend>(manifest, run, *first.grid, limits.slots, decode);
  }

  Manifest manifest;
  ContinuousRun run;
  std::vector<std::int64_t> slots;  // of the backends that were made
};

struct SchedulerTest : ::testing::Test {
  SchedulerTest() {
    grid.rows = grid.columns = 4;
    networks.run = {&target, &drafter, {16, 2, 3, 10}, cspd("exact", 3)};
    for (auto& method : methods)
      method = std::make_shared<RunMethod>(MethodOptions(), MethodOptions(), networks.manifest, c10::kCPU, 1);
  }

  ToySource::Coming request(std::uint64_t number, int round = 0) const {
    ToySource::Coming coming{number, round, {}};
    coming.request.seed = number;
    coming.request.class_id = 3;
    return coming;
  }

  ResolvedRequest resolve(const Request& request) const {
    ResolvedRequest resolved;
    resolved.grid = &grid;
    resolved.sampling.cfg_scale = request.seed == kWild ? kInfinity : 1.5F;
    resolved.seed = request.seed;
    resolved.class_id = request.class_id;
    resolved.method = methods[request.method ? 1 : 0];
    resolved.prompt = std::make_shared<const PromptIds>();
    return resolved;
  }

  void serve(int slots) {
    LiveSource live(source, slots, [&](const Request& request, bool) { return resolve(request); });
    Scheduler(live, networks, decoding).run();
  }

  // A run of these seeds in this order.
  void run(const std::vector<std::uint64_t>& seeds, std::size_t slots,
           const ProgressCallback& on_progress = {}, const AdmissionCallback& on_admission = {}) {
    std::vector<ResolvedRequest> requests;
    for (const std::uint64_t seed : seeds) requests.push_back(resolve(request(seed).request));
    const std::vector<RequestGroup> groups = group_requests(requests);
    const ResultCallback on_result = [&](std::size_t index, Result&& result) {
      order.push_back(index);
      EXPECT_EQ(result.seed, seeds[index]);
    };
    OrderedSource ordered(requests, groups, slots, {on_result, on_progress, on_admission});
    Scheduler(ordered, networks, decoding).run();
  }

  // Latents [C, L] of an image alone.
  at::Tensor alone(std::uint64_t seed) const {
    ContinuousRequest request;
    request.class_id = 3;
    request.seed = seed;
    request.scales.assign(16, 1.5F);
    const ContinuousRun& run = networks.run;
    return sample({target, drafter, run.shape, run.method}, {request}, 1)[0].latents.t();
  }

  void expect_complete(std::uint64_t number) {
    ASSERT_EQ(source.complete_images.count(number), 1U) << number;
    const Result& result = source.complete_images.at(number);
    at::Tensor latents = at::zeros({2, 16});
    ASSERT_EQ(result.image.pixels.size(), latents.nbytes());
    std::copy(result.image.pixels.begin(), result.image.pixels.end(),
              reinterpret_cast<std::uint8_t*>(latents.mutable_data_ptr<float>()));
    EXPECT_TRUE(at::allclose(latents, alone(number), 0, 1e-5)) << number;
    EXPECT_EQ(result.seed, number);
    EXPECT_EQ(source.tokens[number], 16);
  }

  static ToyChain chain(ToyChain chain) {
    chain.e = 0.8, chain.of_class = 0.2, chain.of_position = 0.5;
    return chain;
  }

  ToyModel target{chain(toy_target())}, drafter{chain(toy_draft('B'))};
  Grid grid;
  ToyNetworks networks;
  std::array<std::shared_ptr<RunMethod>, 2> methods;
  Worker decoding{true};
  ToySource source;
  std::vector<std::size_t> order;  // of results
};

TEST_F(SchedulerTest, ImagesJoinThoseInWork) {
  source.coming = {request(1), request(2), request(3, 2), request(4, 3)};
  serve(3);
  for (std::uint64_t number = 1; number <= 4; ++number) expect_complete(number);
  EXPECT_EQ(source.complete_images.at(1).statistics.batch, 3);
  EXPECT_EQ(source.complete_images.at(3).statistics.batch, 3);
  EXPECT_TRUE(source.failures.empty());
}

TEST_F(SchedulerTest, ACancelledRequestFreesItsSlotAtOnce) {
  source.coming = {request(1), request(2)};
  source.leaves[1] = 2;
  serve(1);
  EXPECT_EQ(source.rounds[1], 3);
  EXPECT_EQ(source.complete_images.count(1), 0U);
  expect_complete(2);
  EXPECT_TRUE(source.failures.empty());
}

TEST_F(SchedulerTest, ARequestThatDoesNotFitBeginsAnotherRun) {
  source.coming = {request(1), request(2)};
  source.coming.back().request.method = MethodOptions();
  serve(2);
  for (std::uint64_t number = 1; number <= 2; ++number) {
    expect_complete(number);
    EXPECT_EQ(source.complete_images.at(number).statistics.batch, 1);
  }
  EXPECT_THAT(networks.slots, ElementsAre(2, 2));
}

TEST_F(SchedulerTest, TheTimeBeforeARequestIsNotItsOwn) {
  constexpr std::chrono::milliseconds pause(400);
  for (const bool is_same_run : {true, false}) {
    source.complete_images.clear();
    source.coming = {request(1), request(2)};
    source.coming.back().pause = pause;
    if (!is_same_run) source.coming.back().request.method = MethodOptions();
    serve(1);
    for (std::uint64_t number = 1; number <= 2; ++number) {
      const double reported_ms = source.complete_images.at(number).statistics.total_ms();
      EXPECT_GT(reported_ms, 0);
      EXPECT_LE(reported_ms, source.wall_ms.at(number));
      EXPECT_LT(reported_ms, static_cast<double>(pause.count()));
    }
  }
}

TEST_F(SchedulerTest, AnImageOfNoNumbersFailsAlone) {
  MethodOptions official = cspd("official", 3, 0.2F, 100);
  official.steps = 12;
  for (const MethodOptions& method :
       {cspd("exact", 3), cspd("exact", 3, 0.3F), cspd("paper", 3), official, passes(6)}) {
    networks.run.method = method;
    source.complete_images.clear();
    source.failures.clear();
    source.tokens.clear();
    source.coming = {request(1), request(kWild), request(2), request(3)};
    serve(2);
    EXPECT_EQ(source.complete_images.size(), 3U) << method.method << method.rule;
    EXPECT_EQ(source.failures.size(), 1U);
    EXPECT_EQ(source.failures.count(kWild), 1U);
    for (std::uint64_t number = 1; number <= 3; ++number) expect_complete(number);
  }
}

TEST_F(SchedulerTest, AnErrorFailsAllInWork) {
  target.fails = true;
  source.coming = {request(1), request(2), request(3, 500)};
  source.coming.back().request.method = MethodOptions();
  serve(2);
  EXPECT_EQ(source.failures.size(), 3U);
  EXPECT_TRUE(source.coming.empty());
  EXPECT_THAT(networks.slots, ElementsAre(2, 2));  // the third one begins a run of its own
}

TEST_F(SchedulerTest, ResultsOfAnOrderedRunComeInOrder) {
  run({5, 6, 7, 8, 9, 10, 11}, 3);
  EXPECT_THAT(order, ElementsAre(0, 1, 2, 3, 4, 5, 6));
  EXPECT_THAT(networks.slots, ElementsAre(3));
}

TEST_F(SchedulerTest, AnOrderedRunAsksForEveryRequestUntilItStops) {
  std::vector<std::size_t> asked;
  std::vector<std::int64_t> done;
  run(
      {1, 2, 3, 4, 5}, 1,
      [&](const Progress& progress) {
        EXPECT_EQ(progress.requests.size(), 1U);
        EXPECT_EQ(progress.tokens_total, 16);
        EXPECT_EQ(progress.run_total, 5 * 16);
        done.push_back(progress.run_done);
        return true;
      },
      [&](std::size_t index) {
        asked.push_back(index);
        return index == 1 ? Admission::skip : index == 3 ? Admission::stop : Admission::generate;
      });
  EXPECT_THAT(asked, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(order, ElementsAre(0, 2));
  EXPECT_TRUE(std::is_sorted(done.begin(), done.end()));
  EXPECT_LE(done.back(), 2 * 16);
}

TEST_F(SchedulerTest, AnOrderedRunStopsWhenProgressSaysSo) {
  int calls = 0;
  const auto two_calls = [&](const Progress&) { return ++calls < 3; };
  EXPECT_NE(error_of(ExitCode::interrupted, [&] { run({1, 2, 3}, 2, two_calls); }), "");
  EXPECT_EQ(calls, 3);
}

TEST_F(SchedulerTest, TheFirstFailureEndsAnOrderedRun) {
  EXPECT_NE(error_of(ExitCode::bundle, [&] { run({1, kWild, 2}, 1); }), "");
  EXPECT_THAT(order, ElementsAre(0));
  run({1, 2}, 2);  // the thread that decodes goes on
  EXPECT_THAT(order, ElementsAre(0, 0, 1));
}

}  // namespace
}  // namespace lamplighter::test

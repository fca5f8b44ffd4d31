#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "serve/queue.h"

namespace lamplighter {
namespace {

using std::chrono::milliseconds;

const RequestSource::Fits kAll = [](const Request&) { return true; };
const RequestSource::Fits kSmall = [](const Request& request) { return request.width == 0; };

class ServeQueueTest : public ::testing::Test {
 protected:
  static std::vector<Request> images(std::size_t count, int width = 0) {
    Request request;
    request.width = width;
    return std::vector<Request>(count, request);
  }
  std::shared_ptr<Job> submit(std::size_t count, int width = 0, double deadline_s = 60) {
    return queue_.submit(images(count, width), deadline_s, true);
  }
  static int status_of(const std::function<void()>& call) {
    try {
      call();
    } catch (const HttpError& error) {
      return error.status();
    }
    return 200;
  }
  std::uint64_t take(const RequestSource::Fits& fits = kAll) {
    return queue_.next(fits, false).value().number;
  }

  int generated_ = 0;
  Queue queue_{4, 2, [this](const Result&, const ImageTimes&) { ++generated_; }};
};

TEST_F(ServeQueueTest, ImagesComeInOrderAndGoToTheirOrder) {
  const auto one = submit(2), other = submit(1);
  EXPECT_EQ(queue_.state().waiting, 3U);
  const std::uint64_t first = take(), second = take(), third = take();
  EXPECT_FALSE(queue_.next(kAll, false));
  EXPECT_EQ(queue_.state().in_work, 3U);
  Result result;
  for (const std::uint64_t number : {third, first}) {
    result.seed = 100 + number;
    queue_.complete(number, Result(result));
  }
  EXPECT_TRUE(other->wait(milliseconds(0)));
  EXPECT_EQ(other->result(0).seed, 100 + third);
  EXPECT_FALSE(one->wait(milliseconds(0)));
  queue_.complete(second, Result(result));
  EXPECT_TRUE(one->wait(milliseconds(0)));
  EXPECT_EQ(one->result(0).seed, 100 + first);
  EXPECT_EQ(generated_, 3);
  EXPECT_EQ(queue_.state().in_work, 0U);
}

TEST_F(ServeQueueTest, FullMeansTryLater) {
  submit(6);  // two slots are free besides the four places
  EXPECT_EQ(status_of([&] { submit(1); }), 429);
  take();
  take();
  EXPECT_EQ(status_of([&] { submit(1); }), 429);
  take();
  EXPECT_EQ(status_of([&] { submit(1); }), 200);
  try {
    submit(6);
    FAIL();
  } catch (const HttpError& error) {
    EXPECT_EQ(error.status(), 429);
    EXPECT_GE(error.retry_s(), 1);
  }
  EXPECT_EQ(status_of([&] { submit(7); }), 400);  // which never has a place
}

TEST_F(ServeQueueTest, CandidatesCountAsImages) {
  std::vector<Request> requests = images(2);
  for (Request& request : requests) {
    request.region = Region{};
    request.region->candidates = 3;
  }
  EXPECT_EQ(status_of([&] { queue_.submit(requests, 60, true); }), 200);
  EXPECT_EQ(queue_.state().waiting, 2U);
  EXPECT_EQ(status_of([&] { submit(1); }), 429);
  take();
  EXPECT_EQ(status_of([&] { submit(3); }), 429);
  EXPECT_EQ(status_of([&] { submit(2); }), 200);
  requests.front().region->candidates = 4;
  EXPECT_EQ(status_of([&] { queue_.submit(requests, 60, true); }), 400);
}

TEST_F(ServeQueueTest, WhatFitsMayPassAFewTimes) {
  Queue queue(100, 2, [](const Result&, const ImageTimes&) {});
  const auto wide = queue.submit(images(1, 512), 60, false);
  const auto small = queue.submit(images(20), 60, false);
  int passed = 0;
  while (queue.next(kSmall, false)) ++passed;
  EXPECT_GT(passed, 0);
  EXPECT_LT(passed, 20);
  EXPECT_EQ(queue.next(kSmall, true)->request.width, 512) << "its turn has come";
}

TEST_F(ServeQueueTest, TimesAreThoseOfAClock) {
  constexpr double part_s = 0.05;
  const auto pause = [=] { std::this_thread::sleep_for(std::chrono::duration<double>(part_s)); };
  std::vector<ImageTimes> seen;
  Queue queue(4, 2, [&](const Result&, const ImageTimes& times) { seen.push_back(times); });
  queue.submit(images(2), 60, false);
  pause();
  const std::uint64_t first = queue.next(kAll, false).value().number;
  pause();
  const std::uint64_t second = queue.next(kAll, false).value().number;
  pause();
  queue.complete(first, Result());  // the engine names no times
  queue.complete(second, Result());
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_GE(seen[0].waited_s, part_s);
  EXPECT_GE(seen[0].generated_s, 2 * part_s);
  EXPECT_GE(seen[1].waited_s, 2 * part_s);
  EXPECT_GE(seen[1].generated_s, part_s);
  EXPECT_LT(seen[1].generated_s, seen[0].generated_s);
}

TEST_F(ServeQueueTest, WhoHasGoneIsDropped) {
  const auto gone = submit(3), stays = submit(1);
  const std::uint64_t number = take();
  EXPECT_TRUE(queue_.is_wanted(number));
  gone->cancel();
  EXPECT_FALSE(queue_.is_wanted(number));
  EXPECT_EQ(queue_.state().in_work, 0U);
  const std::uint64_t next = take();
  EXPECT_TRUE(queue_.is_wanted(next));
  EXPECT_EQ(queue_.state().waiting, 0U);
  queue_.complete(number, Result());  // comes too late
  EXPECT_EQ(generated_, 0);
  EXPECT_TRUE(stays->is_wanted());
}

TEST_F(ServeQueueTest, TheDeadlineEndsWaitingAndGenerating) {
  const auto late = submit(2, 0, 0.0);
  EXPECT_FALSE(queue_.next(kAll, false));
  EXPECT_EQ(status_of([&] { late->wait(milliseconds(0)); }), 504);
  const auto soon = submit(1, 0, 0.05);
  const std::uint64_t number = take();
  std::this_thread::sleep_for(milliseconds(60));
  EXPECT_FALSE(queue_.is_wanted(number));
  EXPECT_EQ(status_of([&] { soon->updates(milliseconds(0)); }), 504);
}

TEST_F(ServeQueueTest, AClosedQueueIsGeneratedToItsEnd) {
  submit(1);
  queue_.close();
  EXPECT_EQ(status_of([&] { submit(1); }), 503);
  EXPECT_TRUE(queue_.next(kAll, true));
  EXPECT_FALSE(queue_.next(kAll, true));
}

TEST_F(ServeQueueTest, NextWaitsWhenNothingIsInWork) {
  std::thread later([&] {
    std::this_thread::sleep_for(milliseconds(20));
    submit(1);
  });
  EXPECT_TRUE(queue_.next(kAll, true));
  later.join();
}

TEST_F(ServeQueueTest, ATextWaitsForItsTurnAndForTheImagesInWork) {
  const auto text = [&](double deadline_s = 60) {
    auto job = std::make_shared<TextJob>(DescribeRequest{}, MethodOptions{}, deadline_s);
    queue_.submit(job);
    return job;
  };
  submit(1);
  const auto asked = text();
  submit(1);
  EXPECT_EQ(queue_.state().texts, 1U);
  EXPECT_EQ(queue_.next_text(), nullptr);  // an image came first
  const std::uint64_t first = take();
  EXPECT_FALSE(queue_.next(kAll, false));  // the next image came behind the text
  queue_.complete(first, Result());
  EXPECT_FALSE(queue_.next(kAll, true));  // and ends the run
  EXPECT_EQ(queue_.next_text(), asked);
  EXPECT_EQ(queue_.state().texts, 1U);  // in work
  EXPECT_EQ(queue_.next_text(), nullptr);
  EXPECT_EQ(queue_.state().texts, 0U);
  take();
  text()->cancel();
  const auto late = text(0);
  EXPECT_EQ(queue_.next_text(), nullptr);
  EXPECT_EQ(status_of([&] { late->more(milliseconds(0)); }), 504);
  for (int i = 0; i < 5; ++i) text();
  EXPECT_EQ(status_of([&] { text(); }), 429);
  queue_.close();
  EXPECT_FALSE(queue_.is_over());
  while (queue_.next_text() != nullptr) continue;
  EXPECT_TRUE(queue_.is_over());
  EXPECT_EQ(status_of([&] { text(); }), 503);
}

TEST_F(ServeQueueTest, TextsComeInParts) {
  TextJob job({}, {}, 60);
  EXPECT_EQ(job.more(milliseconds(0)), "");
  job.grow("a");
  job.grow("b");
  EXPECT_EQ(job.result(), nullptr);
  EXPECT_EQ(job.more(milliseconds(0)), "ab");
  job.grow("c");
  job.complete({"abc", {1, 2, 3}, true, 9, {}, {}, {}});
  EXPECT_EQ(job.result(), nullptr);  // before all text is taken
  EXPECT_EQ(job.more(milliseconds(0)), "c");
  ASSERT_NE(job.result(), nullptr);
  EXPECT_EQ(job.result()->text, "abc");
}

TEST_F(ServeQueueTest, AnErrorGoesToItsOrderAlone) {
  const auto bad = submit(1), good = submit(1);
  queue_.fail(take(), Error(ExitCode::input, "no caption"));
  EXPECT_EQ(status_of([&] { bad->wait(milliseconds(0)); }), 400);
  EXPECT_TRUE(good->is_wanted());
  queue_.fail(take(), Error(ExitCode::memory, "too large"));
  EXPECT_EQ(status_of([&] { good->wait(milliseconds(0)); }), 503);
}

TEST_F(ServeQueueTest, NewsTellWhatCameSinceTheLast) {
  const auto job = submit(1);
  const std::uint64_t number = take();
  Grid grid;
  grid.rows = grid.columns = 2;
  EXPECT_TRUE(job->updates(milliseconds(0)).empty());
  queue_.progress(number, grid, {5}, 1);
  queue_.progress(number, grid, {5, 6, 7}, 2);
  EXPECT_EQ(queue_.state().tokens_done, 3);
  EXPECT_EQ(queue_.state().tokens_in_work, 4);
  auto updates = job->updates(milliseconds(0));
  ASSERT_EQ(updates.size(), 1U);
  EXPECT_EQ(updates[0].committed, (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(updates[0].codes, (std::vector<std::int32_t>{5, 6, 7}));
  EXPECT_FALSE(updates[0].complete);
  queue_.complete(number, Result());
  updates = job->updates(milliseconds(0));
  ASSERT_EQ(updates.size(), 1U);
  EXPECT_TRUE(updates[0].complete);
  EXPECT_TRUE(updates[0].committed.empty());
}

TEST_F(ServeQueueTest, StateCountsCompleteImagesWhileOthersOfTheirJobAreLeft) {
  const auto pair = submit(2), single = submit(1);
  const std::uint64_t first = take(), second = take(), third = take();
  EXPECT_EQ(queue_.state().complete, 0U);
  queue_.complete(first, Result());
  queue_.complete(third, Result());
  EXPECT_EQ(queue_.state().complete, 1U);  // of the pair
  queue_.complete(second, Result());
  EXPECT_EQ(queue_.state().complete, 0U);
}

TEST_F(ServeQueueTest, TokensOfARegionComeInOrderAroundWhatIsKept) {
  Grid grid;
  grid.rows = grid.columns = 3;
  grid.width = grid.height = 3;
  Request request;
  request.kept.resize(9);
  request.region = Region{1, 0, 1, 2};
  const auto job = queue_.submit({request}, 60, true);
  const std::uint64_t number = take();
  // The first token came by itself. The second begins a part, and is the last that is missing.
  queue_.progress(number, grid, std::vector<std::int32_t>(9), 1);
  const std::vector<JobUpdate> updates = job->updates(milliseconds(0));
  ASSERT_EQ(updates.size(), 1U);
  EXPECT_TRUE(updates[0].in_order);
  EXPECT_EQ(updates[0].tokens, 2);
  EXPECT_EQ(updates[0].committed, std::vector<std::int64_t>{1});

  const auto other = queue_.submit({request}, 60, true);
  queue_.progress(take(), grid, std::vector<std::int32_t>(1), 1);
  EXPECT_FALSE(other->updates(milliseconds(0)).at(0).in_order) << "two tokens, and the first is missing";
}

TEST_F(ServeQueueTest, AnInterruptKeepsWhatIsThere) {
  const auto job = submit(2);
  const std::uint64_t first = take(), second = take();
  Grid grid;
  grid.rows = grid.columns = 2;
  queue_.complete(first, Result());
  queue_.progress(second, grid, {5, 6}, 2);
  job->interrupt();
  EXPECT_TRUE(job->wait(milliseconds(0)));
  EXPECT_TRUE(job->has_result(0));
  EXPECT_FALSE(job->has_result(1));
  EXPECT_EQ(job->part(1).codes, (std::vector<std::int32_t>{5, 6}));
  EXPECT_FALSE(queue_.is_wanted(second));
  queue_.complete(second, Result());
  EXPECT_FALSE(job->has_result(1)) << "comes too late";
}

}  // namespace
}  // namespace lamplighter

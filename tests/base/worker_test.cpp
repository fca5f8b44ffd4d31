#include "base/worker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <stdexcept>
#include <vector>

namespace lamplighter {
namespace {

using ::testing::ElementsAre;

TEST(Worker, DoesJobsAtOnceWithoutAThread) {
  Worker worker(false);
  const std::thread::id caller = std::this_thread::get_id();
  bool done = false;
  worker.add([&] { done = std::this_thread::get_id() == caller; });
  EXPECT_TRUE(done);
  EXPECT_THROW(worker.add([] { throw std::runtime_error("full"); }), std::runtime_error);
  worker.finish();
}

TEST(Worker, DoesJobsInOrderWhileTheCallerGoesOn) {
  Worker worker(true);
  std::promise<void> gate;
  std::vector<int> done;
  worker.add([&] { gate.get_future().wait(); });
  for (int i = 0; i < 5; ++i) worker.add([&done, i] { done.push_back(i); });
  gate.set_value();  // the first job waits for what comes after all were given
  worker.finish();
  EXPECT_THAT(done, ElementsAre(0, 1, 2, 3, 4));
}

TEST(Worker, WaitsWhileManyJobsWait) {
  Worker worker(true);
  std::promise<void> gate;
  std::atomic<std::size_t> added{0};
  const auto job = [wait = gate.get_future().share()] { wait.wait(); };
  std::thread giver([&] {
    for (std::size_t i = 0; i < 2 * Worker::kMost; ++i, ++added) worker.add(job);
  });
  while (added < Worker::kMost) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(added, Worker::kMost);
  gate.set_value();
  giver.join();
  worker.finish();
  EXPECT_EQ(added, 2 * Worker::kMost);
}

TEST(Worker, CarriesTheFirstFailureAndDropsWhatFollows) {
  Worker worker(true);
  bool followed = false;
  std::promise<void> gate;
  worker.add([&] {
    gate.get_future().wait();
    throw std::runtime_error("full");
  });
  worker.add([&] { followed = true; });
  gate.set_value();
  try {
    worker.finish();
    ADD_FAILURE() << "no exception";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "full");
  }
  EXPECT_FALSE(followed);
  worker.add([&] { followed = true; });
  worker.finish();  // throws once
  EXPECT_TRUE(followed);
}

TEST(Worker, EndsWithItsJobsDone) {
  std::vector<int> done;
  {
    Worker worker(true);
    for (int i = 0; i < 3; ++i) worker.add([&done, i] { done.push_back(i); });
  }
  EXPECT_THAT(done, ElementsAre(0, 1, 2));
}

}  // namespace
}  // namespace lamplighter

#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "lamplighter/pipeline.h"
#include "serve/refusal.h"

namespace lamplighter {

// The pictures that one client waits for. Safe to use from several threads.
class Order {
 public:
  using Clock = std::chrono::steady_clock;

  // `follows`: the client is told of every cycle.
  Order(std::vector<Request> requests, double deadline_s, bool follows);

  const std::vector<Request>& requests() const { return requests_; }
  double elapsed_s() const;

  // Nobody waits any more.
  void cancel();
  bool is_wanted() const;  // neither cancelled nor failed
  bool is_late() const;

  // For those who draw.
  void progress(std::size_t picture, const Grid& grid, const std::vector<std::int32_t>& codes,
                std::int64_t committed);
  void complete(std::size_t picture, Result&& result);
  void fail(const Refusal& refusal);  // all of it

  // What is new of a picture.
  struct News {
    std::size_t picture = 0;
    const Grid* grid = nullptr;
    std::vector<std::int32_t> codes;      // all so far
    std::vector<std::int64_t> committed;  // by the cycles since the last news
    std::int64_t tokens = 1;              // all that are committed, the first came before the cycles
    bool in_order = true;                 // they came in raster order
    bool complete = false;                // its result is there
  };
  // What became since the last call, waiting for it up to `most`. Throws the Refusal when the order failed.
  std::vector<News> news(std::chrono::milliseconds most);
  // Waits up to `most` for all pictures; true when they are there. Throws the Refusal when the order failed.
  bool wait(std::chrono::milliseconds most);
  // The results of complete pictures, which stay as they are.
  const Result& result(std::size_t picture) const { return *results_[picture]; }

  bool follows() const { return follows_; }

 private:
  void rethrow() const;  // with the lock held

  const std::vector<Request> requests_;
  const Clock::time_point since_ = Clock::now(), deadline_;
  const bool follows_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::optional<Result>> results_;
  std::vector<News> news_;  // by picture
  std::vector<bool> is_new_;
  std::size_t complete_ = 0;
  bool cancelled_ = false;
  std::optional<Refusal> refusal_;
};

}  // namespace lamplighter

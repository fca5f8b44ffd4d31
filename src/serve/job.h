#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "lamplighter/pipeline.h"
#include "serve/http_error.h"

namespace lamplighter {

// What is new of one image of a job.
struct JobUpdate {
  std::size_t image = 0;
  const Grid* grid = nullptr;
  std::vector<std::int32_t> codes;      // all so far
  std::vector<std::int64_t> committed;  // by each cycle since the last update
  std::int64_t tokens = 1;              // committed so far; the first came before the cycles
  std::int64_t passes = 1;              // of the target so far
  bool in_order = true;                 // tokens came in raster order
  bool complete = false;                // the result is there
};

// The images that one client waits for. Safe to use from several threads.
class Job {
 public:
  using Clock = std::chrono::steady_clock;

  // `follows`: the client wants updates of every cycle.
  Job(std::vector<Request> requests, double deadline_s, bool follows);

  const std::vector<Request>& requests() const { return requests_; }
  double elapsed_s() const;
  bool follows() const { return follows_; }

  // The client does not wait any more.
  void cancel();
  // The client wants what there is so far, and no more.
  void interrupt();
  bool is_interrupted() const;
  bool is_wanted() const;  // neither cancelled, nor interrupted, nor failed
  bool is_late() const;

  // For the engine:
  void progress(std::size_t image, const Grid& grid, const std::vector<std::int32_t>& codes,
                std::int64_t committed);
  void complete(std::size_t image, Result&& result);
  void fail(const HttpError& error);  // the whole job

  // Waits up to `most` for updates since the last call. Throws the HttpError of a job that failed.
  std::vector<JobUpdate> updates(std::chrono::milliseconds most);
  // Waits up to `most` for all images, or for an interrupt; true when they are there or it came. Throws the
  // HttpError of a job that failed.
  bool wait(std::chrono::milliseconds most);
  // The result of an image that is complete. It stays as it is.
  const Result& result(std::size_t image) const { return *results_[image]; }
  bool has_result(std::size_t image) const;
  std::size_t results() const;  // images that are complete

  // An image so far, where the job follows; no grid: nothing.
  struct Part {
    const Grid* grid = nullptr;
    std::vector<std::int32_t> codes;
    std::int64_t tokens = 0, passes = 0;  // committed; of the target
  };
  Part part(std::size_t image) const;

 private:
  void rethrow() const;  // with the lock held

  const std::vector<Request> requests_;
  const Clock::time_point since_ = Clock::now(), deadline_;
  const bool follows_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::optional<Result>> results_;
  std::vector<JobUpdate> updates_;  // by image
  std::vector<bool> is_updated_;
  std::size_t complete_ = 0;
  bool cancelled_ = false, interrupted_ = false;
  std::optional<HttpError> error_;
};

}  // namespace lamplighter

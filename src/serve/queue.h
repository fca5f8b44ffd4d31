#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "lamplighter/pipeline.h"
#include "serve/job.h"
#include "serve/metrics.h"
#include "serve/text_job.h"

namespace lamplighter {

// Jobs that wait for one engine, first come, first served: a request that fits beside the images in work may
// pass the first one a few times. A text waits for its turn among them and for the images in work, and runs
// alone. Safe to use from several threads.
class Queue : public RequestSource {
 public:
  // Called for every image that is complete. Its times are those that a client sees: the parts that the
  // engine measures leave out what an image waits for between them, such as the pixels of another one.
  using OnImage = std::function<void(const Result& result, const ImageTimes& times)>;

  // At most `limit` images wait, each candidate of a region as one; `slots` run side by side.
  Queue(std::size_t limit, int slots, OnImage on_image);

  // Throws HttpError where the queue is full or closed.
  std::shared_ptr<Job> submit(std::vector<Request> requests, double deadline_s, bool follows);
  // Throws like it.
  void submit(std::shared_ptr<TextJob> text);
  // The text whose turn it is, where no image is in work; null: it is an image's. It is in work until the
  // next call.
  std::shared_ptr<TextJob> next_text();
  // Whether it is closed and empty.
  bool is_over() const;
  // No more jobs come; those that wait are completed.
  void close();

  // Whether the engine has asked for requests: its weights are loaded.
  bool started() const { return started_; }
  // The engine has failed, and so do all jobs.
  void fail(const HttpError& error);

  struct State {
    std::size_t waiting = 0, in_work = 0;              // images
    std::size_t texts = 0;                             // waiting and in work
    std::int64_t tokens_done = 0, tokens_in_work = 0;  // of those in work
    std::size_t complete = 0;                          // images of jobs that have others in work or waiting
    double image_s = 0;                                // between two images lately; 0: not known
  };
  State state() const;

  std::optional<Entry> next(const Fits& fits, bool is_idle) override;
  bool is_wanted(std::uint64_t number) override;
  void progress(std::uint64_t number, const Grid& grid, const std::vector<std::int32_t>& codes,
                std::int64_t committed) override;
  void complete(std::uint64_t number, Result&& result) override;
  void fail(std::uint64_t number, const Error& error) override;

 private:
  struct QueuedImage {
    std::uint64_t number = 0;
    std::shared_ptr<Job> job;
    std::size_t image = 0;  // of the job
    double waited_s = 0;
    std::int64_t done = 0, total = 0;  // tokens
  };

  struct QueuedText {
    std::uint64_t number = 0;
    std::shared_ptr<TextJob> job;
  };

  // All with the lock held:
  bool is_turn_of_text() const;
  void check_room(std::size_t wanted) const;
  void drop_unwanted();
  std::deque<QueuedImage>::iterator choose(const Fits& fits, bool is_idle);
  std::size_t count_waiting() const;  // images, each candidate of a region as one, and texts
  int seconds_to_wait() const;

  const std::size_t limit_;
  const int slots_;
  const OnImage on_image_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<QueuedImage> waiting_;
  std::deque<QueuedText> texts_;
  std::shared_ptr<TextJob> text_in_work_;
  std::map<std::uint64_t, QueuedImage> in_work_;
  std::uint64_t submitted_ = 0;  // images and texts
  int passed_ = 0;               // how often the first one was passed
  std::atomic<bool> started_{false};
  bool closed_ = false;
  double image_s_ = 0;
};

}  // namespace lamplighter

#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>

#include "base/worker.h"
#include "lamplighter/pipeline.h"
#include "pipeline/scheduler/backend.h"
#include "pipeline/scheduler/resolved_source.h"

namespace lamplighter {

// Generates the images of a source: requests that fit each other run side by side on one backend, and when an
// image is complete, the next request takes its slot. Complete images are decoded and handed over by
// `decoding` beside the steps of the others.
class Scheduler {
 public:
  // All of it outlives the scheduler.
  Scheduler(ResolvedSource& source, Networks& networks, Worker& decoding)
      : source_(source), networks_(networks), decoding_(decoding) {}
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // Until the source has no more requests. Throws what the source throws.
  void run();

 private:
  void run_backend();
  bool begin_images();
  void drop_unwanted();
  void update(const Step& step);
  void hand_over_complete();
  void hand_over(std::int64_t image, const ScheduledImage& complete);
  void fail_all(const std::exception_ptr& failure);

  ResolvedSource& source_;
  Networks& networks_;
  Worker& decoding_;
  std::optional<ScheduledRequest> waiting_;  // begins next
  // The run of one backend:
  std::unique_ptr<Backend> backend_;
  ResolvedSource::Fits fits_;
  std::int64_t begun_ = 0;  // images
  double clock_ms_ = 0;     // of steps without prefill
  ScheduledImages images_;
};

}  // namespace lamplighter

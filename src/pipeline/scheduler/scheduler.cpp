#include "pipeline/scheduler/scheduler.h"

#include <c10/core/InferenceMode.h>

#include <iterator>
#include <utility>
#include <vector>

#include "base/stopwatch.h"

namespace lamplighter {

// After an exception, images that were handed over are still decoded: their jobs use the source.
Scheduler::~Scheduler() {
  try {
    decoding_.finish();
  } catch (...) {
  }
}

void Scheduler::run() {
  const c10::InferenceMode inference;
  const auto any = [](const ResolvedRequest&) { return true; };
  while (waiting_ || (waiting_ = source_.next(any, true))) {
    try {
      run_backend();
    } catch (...) {
      fail_all(std::current_exception());
    }
    backend_.reset();
    decoding_.finish();
  }
}

void Scheduler::run_backend() {
  begun_ = 0;
  clock_ms_ = 0;
  backend_ = networks_.backend(waiting_->request, source_.limits(*waiting_));
  fits_ = [this, kind = waiting_->request](const ResolvedRequest& request) {
    return request.runs_beside(kind) && backend_->takes(request);
  };
  // A run whose requests are known is long: it fails before images are generated that cannot be decoded.
  if (source_.is_ordered()) {
    decoding_.add([this] { backend_->check_decoding(); });
    decoding_.finish();
  }
  while (begin_images()) {
    Stopwatch watch;
    const Step step = backend_->step();
    clock_ms_ += watch.lap() - step.prefill_ms;
    update(step);
    hand_over_complete();
  }
}

// Fills the free slots. False: no image is in work, and no request is left that fits.
bool Scheduler::begin_images() {
  drop_unwanted();
  const std::int64_t free = backend_->free_slots();
  std::vector<const ResolvedRequest*> fresh;
  while (static_cast<std::int64_t>(fresh.size()) < free) {
    if (!waiting_) waiting_ = source_.next(fits_, images_.empty());
    if (!waiting_ || !fits_(waiting_->request)) break;
    ScheduledImage& image = images_[begun_++];
    image.scheduled = std::move(*waiting_);
    image.began_ms = clock_ms_;
    waiting_.reset();
    fresh.push_back(&image.scheduled.request);
  }
  if (!fresh.empty()) backend_->begin(fresh, source_.upcoming());
  return !images_.empty();
}

void Scheduler::drop_unwanted() {
  for (auto image = images_.begin(); image != images_.end();) {
    const bool is_wanted = image->second.is_complete || source_.is_wanted(image->second.scheduled.number);
    if (!is_wanted) backend_->drop(image->first);
    image = is_wanted ? std::next(image) : images_.erase(image);
  }
}

void Scheduler::update(const Step& step) {
  for (auto& [number, image] : images_) image.is_stepped = false;
  for (const ImageStep& stepped : step.images) {
    const auto found = images_.find(stepped.image);
    ScheduledImage& image = found->second;
    if (stepped.failure) {
      source_.fail(image.scheduled.number, std::make_exception_ptr(*stepped.failure));
      backend_->drop(stepped.image);
      images_.erase(found);
      continue;
    }
    image.tokens = stepped.tokens;
    image.committed = stepped.committed;
    image.begins_part = stepped.begins_part;
    image.is_stepped = true;
    image.is_complete = stepped.is_complete;
    image.ended_ms = clock_ms_;
  }
  if (step.images.empty()) return;  // a device reports a step later
  source_.progress(images_, [this](std::int64_t image) { return backend_->codes(image); });
}

void Scheduler::hand_over_complete() {
  for (auto image = images_.begin(); image != images_.end();) {
    if (image->second.is_complete) {
      hand_over(image->first, image->second);
      image = images_.erase(image);
    } else if (source_.is_ordered()) {
      return;
    } else {
      ++image;
    }
  }
}

void Scheduler::hand_over(std::int64_t image, const ScheduledImage& complete) {
  CompleteImage taken = backend_->take(image);
  taken.statistics.decode_ms = complete.ended_ms - complete.began_ms;
  const ResolvedRequest& request = complete.scheduled.request;
  const auto result = std::make_shared<Result>(Result{{},
                                                      std::move(taken.codes),
                                                      request.sampling,
                                                      request.method->options,
                                                      request.seed,
                                                      request.prompt->cut,
                                                      std::move(taken.statistics)});
  decoding_.add([this, number = complete.scheduled.number, result, decode = std::move(taken.decode)] {
    try {
      Stopwatch watch;
      result->image = decode(result->codes);
      result->statistics.image_ms = watch.lap();
      source_.complete(number, std::move(*result));
    } catch (...) {
      source_.fail(number, std::current_exception());
    }
  });
}

// The request that could not even begin fails where none is in work.
void Scheduler::fail_all(const std::exception_ptr& failure) {
  if (images_.empty() && !waiting_) std::rethrow_exception(failure);
  if (images_.empty()) source_.fail(std::exchange(waiting_, std::nullopt)->number, failure);
  for (const auto& [number, image] : std::exchange(images_, {}))
    source_.fail(image.scheduled.number, failure);
}

}  // namespace lamplighter

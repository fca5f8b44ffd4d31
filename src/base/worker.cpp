#include "base/worker.h"

#include <utility>

namespace lamplighter {

Worker::Worker(bool own_thread) {
  if (own_thread) thread_ = std::thread([this] { work(); });
}

Worker::~Worker() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Worker::add(std::function<void()> job) {
  if (!thread_.joinable()) return job();
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return jobs_.size() < kMost; });
    rethrow();
    jobs_.push_back(std::move(job));
  }
  changed_.notify_all();
}

void Worker::finish() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return jobs_.empty(); });
  failed_ = false;
  rethrow();
}

void Worker::rethrow() {
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void Worker::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ending_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    if (!failed_) {
      const std::function<void()>& job = jobs_.front();
      lock.unlock();
      std::exception_ptr failure;
      try {
        job();
      } catch (...) {
        failure = std::current_exception();
      }
      lock.lock();
      if (failure) {
        failure_ = failure;
        failed_ = true;
      }
    }
    jobs_.pop_front();
    changed_.notify_all();
  }
}

}  // namespace lamplighter

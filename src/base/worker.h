#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace lamplighter {

// Runs jobs one after the other: in a thread of its own while the caller goes on, or at once.
class Worker {
 public:
  explicit Worker(bool own_thread);
  ~Worker();  // runs the jobs that wait
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // `add` waits while `kMost` jobs wait, `finish` until none does. After a job that throws, the next call of
  // the two throws its exception, and jobs are dropped until `finish` returns or throws.
  void add(std::function<void()> job);
  void finish();

  static constexpr std::size_t kMost = 16;

 private:
  void work();
  void rethrow();  // with the lock held

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;  // the first is in work
  std::exception_ptr failure_;
  bool failed_ = false, ending_ = false;
  std::thread thread_;
};

}  // namespace lamplighter

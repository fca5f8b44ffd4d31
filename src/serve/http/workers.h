#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace lamplighter {

// Threads that are started when there is work for them, up to a number. Idle ones wait for more.
class Workers {
 public:
  explicit Workers(std::size_t most) : most_(most) {}
  ~Workers();  // completes the jobs
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  // The job must not throw.
  void add(std::function<void()> job);

 private:
  void work();

  const std::size_t most_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;
  std::vector<std::thread> threads_;
  std::size_t idle_ = 0;
  bool ending_ = false;
};

}  // namespace lamplighter

#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

namespace lamplighter {

// Images that can be fetched by name for some time. The oldest are dropped when that time has passed, or when
// all of them would take more than `most_bytes`. Safe to use from several threads.
class ImageStore {
 public:
  using Clock = std::chrono::steady_clock;
  using Bytes = std::shared_ptr<const std::string>;

  ImageStore(std::chrono::seconds lifetime, std::size_t most_bytes)
      : lifetime_(lifetime), most_bytes_(most_bytes) {}

  // A name of 32 hexadecimal digits that nobody can guess.
  std::string add(std::string bytes, Clock::time_point now = Clock::now());
  // Null when there is no such image, or none any more.
  Bytes find(const std::string& name, Clock::time_point now = Clock::now());

 private:
  struct Entry {
    std::string name;
    Clock::time_point end;
  };
  void drop(Clock::time_point now, std::size_t room);

  const std::chrono::seconds lifetime_;
  const std::size_t most_bytes_;
  std::mutex mutex_;
  std::unordered_map<std::string, Bytes> images_;
  std::deque<Entry> ages_;  // the oldest first
  std::size_t bytes_ = 0;
};

}  // namespace lamplighter

#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace lamplighter {

// Writes lines to a descriptor in a thread of its own: who adds one never waits for whoever reads there.
// Lines for which there is no room are dropped, and a line says how many. Safe to use from several threads.
class LineWriter {
 public:
  explicit LineWriter(int descriptor);
  // Writes what is left, as far as that takes less than a second.
  ~LineWriter();
  LineWriter(const LineWriter&) = delete;
  LineWriter& operator=(const LineWriter&) = delete;

  void add(std::string line);

  static constexpr std::size_t kMostLines = 1024;  // that wait

 private:
  void run();
  bool write(std::string_view bytes);
  bool is_over();
  void report_dropped();  // with the lock held

  const int descriptor_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> lines_;
  std::uint64_t dropped_ = 0;
  bool ending_ = false;
  std::chrono::steady_clock::time_point end_;
  std::thread thread_;  // last: it uses the rest
};

}  // namespace lamplighter

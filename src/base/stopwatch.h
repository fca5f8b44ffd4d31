#pragma once

#include <chrono>

namespace lamplighter {

// Measures wall-clock milliseconds between laps.
class Stopwatch {
 public:
  double lap() {
    const auto now = Clock::now();
    const double ms = std::chrono::duration<double, std::milli>(now - last_).count();
    last_ = now;
    return ms;
  }
  // Milliseconds since the last lap; starts no new one.
  double elapsed() const { return Stopwatch(*this).lap(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point last_ = Clock::now();
};

}  // namespace lamplighter

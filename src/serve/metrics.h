#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "lamplighter/pipeline.h"

namespace lamplighter {

// Seconds that an image waited for its slot, and from there to its pixels.
struct ImageTimes {
  double waited_s = 0, generated_s = 0;
};

// The metrics of a server, for Prometheus. Safe to use from several threads.
class Metrics {
 public:
  void answered(const std::string& path, int status, double seconds);
  void generated(const std::string& model, const Result& result, const ImageTimes& times);

  // The current state of a model.
  struct Gauges {
    std::size_t waiting = 0, in_work = 0;
  };
  // All metrics in the text format 0.0.4; gauges by model.
  std::string text(const std::map<std::string, Gauges>& gauges) const;

 private:
  struct Histogram {
    static constexpr std::array kBounds{0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0};
    std::array<std::uint64_t, kBounds.size()> counts{};  // not cumulative
    std::uint64_t all = 0;
    double sum = 0;

    void add(double value);
    std::string text(const std::string& name, const std::string& labels) const;
  };
  struct Totals {
    std::int64_t images = 0, tokens = 0, passes = 0;
    Histogram waited_s, generated_s;
  };

  mutable std::mutex mutex_;
  std::map<std::pair<std::string, int>, std::uint64_t> answers_;     // by path and status
  std::map<std::string, Histogram> seconds_;                         // by path
  std::map<std::pair<std::string, std::string>, Totals> generated_;  // by model and method
};

}  // namespace lamplighter

#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "bench/machine/nvml.h"

// Describes the machine and its load by other programs. `root` is a prefix of /proc and /sys.
namespace lamplighter {

struct Environment {
  std::string cpu;                     // model; empty: unknown
  int cpus = 0;                        // that the system has
  std::optional<double> mhz, max_mhz;  // of the CPUs: mean at the start, and maximum
  std::string gpu, driver, cuda;       // empty on the CPU and when unknown
  std::optional<double> gpu_mhz, gpu_max_mhz;
  std::string version, commit, torch;  // of this build; commit is empty outside a checkout
  int threads = 0;                     // Torch's threads
  std::optional<double> load_before;   // running and waiting tasks, mean of the minute before
  std::optional<double> others;        // share of CPU time that other programs took during the run

  // Whether other programs affected the times: they took a tenth of the CPUs during the run, or before it
  // when that is unknown.
  bool is_busy() const;
  // One line without the load.
  std::string words() const;
  // One line; "" unless busy.
  std::string warning() const;
};

// Reads everything except the load during the run.
Environment read_environment(const std::string& gpu, const Nvml& nvml, const std::string& root = "");

// Measures the CPU time of other programs.
class LoadMeter {
 public:
  explicit LoadMeter(const std::string& root = "");
  // Share since construction; empty where the system does not report it.
  std::optional<double> others() const;

 private:
  struct Ticks {
    double all = 0, busy = 0, own = 0;  // ticks of all CPUs, of all programs, of this process
  };
  std::optional<Ticks> read() const;

  std::string root_;
  std::optional<Ticks> begin_;
};

}  // namespace lamplighter

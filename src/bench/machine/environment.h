#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "bench/machine/nvml.h"

// Where a run takes place, and what else the machine did meanwhile. `root` stands before /proc and /sys.
namespace lamplighter {

struct Environment {
  std::string cpu;                     // model; empty: not known
  int cpus = 0;                        // that the system has
  std::optional<double> mhz, max_mhz;  // of the CPUs: the mean at the start, and the most there is
  std::string gpu, driver, cuda;       // empty on the CPU and where they are not known
  std::optional<double> gpu_mhz, gpu_max_mhz;
  std::string version, commit, torch;  // of this build; commit is empty where it was no checkout
  int threads = 0;                     // of Torch
  std::optional<double> load_before;   // tasks that ran or waited, mean of the minute before
  std::optional<double> others;        // share of all CPUs' time that other programs took during the run

  // Other programs took enough to be seen in the times: a tenth of the CPUs during the run, or where that is
  // not known, before it.
  bool is_busy() const;
  // One line, without the load.
  std::string words() const;
  // One line; empty unless it is busy.
  std::string warning() const;
};

// All but the load during the run.
Environment read_environment(const std::string& gpu, const Nvml& nvml, const std::string& root = "");

// The share of CPU time that other programs take.
class LoadMeter {
 public:
  explicit LoadMeter(const std::string& root = "");
  // Since the construction; nothing where the system does not tell.
  std::optional<double> others() const;

 private:
  struct Ticks {
    double all = 0, busy = 0, own = 0;  // of all CPUs, and of this process
  };
  std::optional<Ticks> read() const;

  std::string root_;
  std::optional<Ticks> begin_;
};

}  // namespace lamplighter

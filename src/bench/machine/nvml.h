#pragma once

#include <memory>
#include <optional>
#include <string>

namespace lamplighter {

// What the NVIDIA driver tells of one GPU. Its library is loaded while the program runs: a machine without it
// tells nothing.
class Nvml {
 public:
  // `bus_id`: PCI address of the device, as CUDA names it. Empty: nothing is loaded.
  explicit Nvml(const std::string& bus_id, const char* library = "libnvidia-ml.so.1");
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  std::string driver() const;         // version; empty: not known
  std::optional<double> mhz() const;  // of its multiprocessors
  std::optional<double> max_mhz() const;
  std::optional<double> joules() const;  // since the driver was loaded

 private:
  struct Library;
  std::unique_ptr<Library> library_;  // null: not there
};

}  // namespace lamplighter

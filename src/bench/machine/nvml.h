#pragma once

#include <memory>
#include <optional>
#include <string>

namespace lamplighter {

// Queries the NVIDIA driver about one GPU. The library is loaded at run time; without it all values are
// unknown.
class Nvml {
 public:
  // `bus_id`: PCI address of the device as CUDA gives it. Empty: loads nothing.
  explicit Nvml(const std::string& bus_id, const char* library = "libnvidia-ml.so.1");
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  std::string driver() const;         // version; empty: unknown
  std::optional<double> mhz() const;  // of its multiprocessors
  std::optional<double> max_mhz() const;
  std::optional<double> joules() const;  // since the driver was loaded

 private:
  struct Library;
  std::unique_ptr<Library> library_;  // null: not available
};

}  // namespace lamplighter

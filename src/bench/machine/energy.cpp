#include "bench/machine/energy.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace lamplighter {
namespace {

namespace fs = std::filesystem;

std::string first_line(const fs::path& file) {
  std::string line;
  std::ifstream stream(file);
  std::getline(stream, line);
  return line;
}

std::optional<double> number_in(const fs::path& file) {
  std::ifstream stream(file);
  double number = 0;
  if (stream >> number) return number;
  return std::nullopt;
}

// Counts packages and memory. Zones inside a package (core, uncore) are part of it already.
bool is_counted(const std::string& zone) {
  return zone.rfind("package-", 0) == 0 || zone == "dram";
}

}  // namespace

EnergyMeter::EnergyMeter(const Nvml* gpu, const std::string& powercap) : gpu_(gpu) {
  std::error_code ignored;
  for (const fs::directory_entry& zone : fs::directory_iterator(powercap, ignored)) {
    if (zone.path().filename().string().rfind("intel-rapl:", 0) != 0) continue;
    if (!is_counted(first_line(zone.path() / "name"))) continue;
    const fs::path file = zone.path() / "energy_uj";
    const std::optional<double> now = number_in(file);  // on many systems only root may read it
    const std::optional<double> range = number_in(zone.path() / "max_energy_range_uj");
    if (now && range) counters_.push_back({file.string(), *range, *now});
  }
  if (gpu_ != nullptr) gpu_last_ = gpu_->joules();
}

std::optional<double> EnergyMeter::lap() {
  std::optional<double> sum;
  for (Counter& counter : counters_) {
    const std::optional<double> now = number_in(counter.file);
    if (!now) continue;
    const double gone = *now - counter.last;
    sum = sum.value_or(0) + (gone < 0 ? gone + counter.range : gone) / 1e6;
    counter.last = *now;
  }
  if (gpu_last_) {
    if (const std::optional<double> now = gpu_->joules()) {
      sum = sum.value_or(0) + *now - *gpu_last_;
      gpu_last_ = now;
    }
  }
  return sum;
}

}  // namespace lamplighter

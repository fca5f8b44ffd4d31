#include "bench/machine/nvml.h"

#include <dlfcn.h>

#include <array>
#include <utility>

namespace lamplighter {
namespace {

// Declared as in nvml.h, which is not needed for the build.
using Handle = struct NvmlDevice*;
constexpr int kSuccess = 0;
constexpr int kMultiprocessors = 1;  // NVML_CLOCK_SM

}  // namespace

struct Nvml::Library {
  void* file = nullptr;
  bool begun = false;
  Handle device = nullptr;

  ~Library() {
    if (begun) call("nvmlShutdown");
    if (file != nullptr) dlclose(file);
  }
  // Calls a function of the library; returns false when it is missing or fails.
  template <class... Arguments>
  bool call(const char* name, Arguments... arguments) const {
    void* const symbol = dlsym(file, name);
    return symbol != nullptr && reinterpret_cast<int (*)(Arguments...)>(symbol)(arguments...) == kSuccess;
  }
  std::optional<double> clock(const char* name) const {
    unsigned int mhz = 0;
    if (!call(name, device, kMultiprocessors, &mhz)) return std::nullopt;
    return mhz;
  }
};

Nvml::Nvml(const std::string& bus_id, const char* library) {
  if (bus_id.empty()) return;
  auto loaded = std::make_unique<Library>();
  loaded->file = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  loaded->begun = loaded->file != nullptr && loaded->call("nvmlInit_v2");
  if (loaded->begun && loaded->call("nvmlDeviceGetHandleByPciBusId_v2", bus_id.c_str(), &loaded->device))
    library_ = std::move(loaded);
}

Nvml::~Nvml() = default;

std::string Nvml::driver() const {
  std::array<char, 96> text{};
  if (library_ == nullptr) return "";
  library_->call("nvmlSystemGetDriverVersion", text.data(), static_cast<unsigned int>(text.size() - 1));
  return text.data();
}

std::optional<double> Nvml::mhz() const {
  return library_ == nullptr ? std::nullopt : library_->clock("nvmlDeviceGetClockInfo");
}

std::optional<double> Nvml::max_mhz() const {
  return library_ == nullptr ? std::nullopt : library_->clock("nvmlDeviceGetMaxClockInfo");
}

std::optional<double> Nvml::joules() const {
  unsigned long long millijoules = 0;
  if (library_ == nullptr ||
      !library_->call("nvmlDeviceGetTotalEnergyConsumption", library_->device, &millijoules))
    return std::nullopt;
  return static_cast<double>(millijoules) / 1000;
}

}  // namespace lamplighter

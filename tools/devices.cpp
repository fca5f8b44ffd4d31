#include "devices.h"

#include <utility>

#if defined(LAMPLIGHTER_WITH_CUDA)
#include <cuda_runtime_api.h>
#endif

namespace lamplighter::cli {

std::string device_name(const c10::Device& device) {
#if defined(LAMPLIGHTER_WITH_CUDA)
  cudaDeviceProp properties{};
  if (device.is_cuda() && cudaGetDeviceProperties(&properties, device.index()) == cudaSuccess)
    return properties.name;
#endif
  return device.str();
}

std::string device_bus_id([[maybe_unused]] const c10::Device& device) {
#if defined(LAMPLIGHTER_WITH_CUDA)
  char text[32] = {};
  if (device.is_cuda() && cudaDeviceGetPCIBusId(text, sizeof text, device.index()) == cudaSuccess)
    return text;
#endif
  return "";
}

std::optional<double> published_bandwidth(const std::string& name) {
  for (const auto& [words, rate] :
       {std::pair{"H200", 4.8e9}, {"A100-SXM4-80GB", kA100Bandwidth}, {"A100 80GB", kA100Bandwidth}}) {
    if (name.find(words) != std::string::npos) return rate;
  }
  return std::nullopt;
}

}  // namespace lamplighter::cli

#include <cuda_runtime_api.h>

#include "device/devices.h"

namespace lamplighter {

std::string device_name(const c10::Device& device) {
  cudaDeviceProp properties{};
  if (device.is_cuda() && cudaGetDeviceProperties(&properties, device.index()) == cudaSuccess)
    return properties.name;
  return device.str();
}

std::string device_bus_id(const c10::Device& device) {
  char text[32] = {};
  if (device.is_cuda() && cudaDeviceGetPCIBusId(text, sizeof text, device.index()) == cudaSuccess)
    return text;
  return "";
}

}  // namespace lamplighter

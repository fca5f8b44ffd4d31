#include "device/devices.h"

namespace lamplighter {

std::string device_name(const c10::Device& device) {
  return device.str();
}

std::string device_bus_id(const c10::Device& /*device*/) {
  return "";
}

}  // namespace lamplighter

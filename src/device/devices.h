#pragma once

#include <c10/core/Device.h>

#include <string>

namespace lamplighter {

// Name of a device like "NVIDIA H200"; "cpu" for the CPU.
std::string device_name(const c10::Device& device);

// PCI address of a CUDA device; "" for the CPU.
std::string device_bus_id(const c10::Device& device);

}  // namespace lamplighter

#pragma once

#include <c10/core/Device.h>

#include <optional>
#include <string>

namespace lamplighter::cli {

// "NVIDIA H200" and the like; "cpu" for the CPU.
std::string device_name(const c10::Device& device);

// PCI address of a CUDA device; empty for the CPU.
std::string device_bus_id(const c10::Device& device);

// Published memory bandwidth of a device with this name, bytes per millisecond.
std::optional<double> published_bandwidth(const std::string& name);
constexpr double kA100Bandwidth = 2.04e9;  // A100 with 80 GB, bytes per millisecond

}  // namespace lamplighter::cli

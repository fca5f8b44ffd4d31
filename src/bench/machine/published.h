#pragma once

#include <optional>
#include <string>

namespace lamplighter {

constexpr double kA100Bandwidth = 2.04e9;  // A100 with 80 GB, bytes per millisecond

// Published memory bandwidth of a device with this name, bytes per millisecond.
std::optional<double> published_bandwidth(const std::string& name);

}  // namespace lamplighter

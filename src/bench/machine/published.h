#pragma once

#include <optional>
#include <string>

namespace lamplighter {

constexpr double kA100Bandwidth = 2.04e9;  // A100 with 80 GB, bytes per millisecond

// Memory bandwidth from the vendor's data sheet, bytes per millisecond.
std::optional<double> published_bandwidth(const std::string& name);

}  // namespace lamplighter

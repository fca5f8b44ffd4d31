#pragma once

#include <string>

#include "batch/run.h"

namespace lamplighter {

// Describes the state of a run in a few lines: images, failures, step compression, and for a running one rate
// and time left. Only reads. Throws Error(ExitCode::input) when there is no run.
std::string describe_status(const std::string& folder);

// Estimates images, time and disk space of a run by generating for a second. Writes nothing.
std::string describe_estimate(const BatchOptions& options, const BatchPlan& plan);

// Formats 90 as "1:30 min" and 7200 as "2:00 h".
std::string format_duration(double seconds);

}  // namespace lamplighter

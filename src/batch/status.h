#pragma once

#include <string>

#include "batch/run.h"

namespace lamplighter {

// Where the run in a folder stands, in a few lines: pictures, failures, step compression, rate and time left
// of processes that draw. Reads alone, also beside them. Throws Error(ExitCode::input) when there is no run.
std::string describe_status(const std::string& folder);

// What a run is going to take, in a few lines: pictures, time and disk, from drawing for a second. Nothing is
// written.
std::string describe_estimate(const BatchOptions& options, const BatchPlan& plan);

// 90 as "1:30 min", 7200 as "2:00 h".
std::string format_duration(double seconds);

}  // namespace lamplighter

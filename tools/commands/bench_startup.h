#pragma once

#include "tools/commands/bench.h"

namespace lamplighter::cli {

// Times whole processes of this program: version, help, and one image from the start of the process to the
// written file. Reports wall-clock and processor milliseconds of interleaved repeats. Throws Error when a
// process fails.
BenchResults bench_startup(const BenchFlags& flags, Terminal& terminal);

}  // namespace lamplighter::cli

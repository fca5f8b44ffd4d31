#pragma once

#include "bench.h"

namespace lamplighter::cli {

// Times whole processes of this program, from their start to their end: version, help, and one picture from
// nothing to its file. Milliseconds of wall clock and of processor, `repeats` in turn. Throws Error when a
// process fails.
BenchResults bench_startup(const BenchFlags& flags, Terminal& terminal);

}  // namespace lamplighter::cli

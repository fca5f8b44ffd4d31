#pragma once

#include <string>
#include <vector>

#include "bench/bench.h"
#include "bench/sweep.h"

namespace lamplighter {

// Parses a method in one word: NAME[:KEY=VALUE]..., e.g. lantern++:k=10:lambda=3:tree=chain-4, with the keys
// of method_options(). List values are separated by /: lambda=3/2/2. Throws Error(ExitCode::usage);
// resolve_method checks the values.
MethodOptions parse_method(const std::string& text);

// Prints a method as flags: --method lantern++ --tree chain-4 --relax-k 10 --lambda 3.0,2.5.
std::string method_flags(const MethodOptions& options);

// The methods of a run, the baseline first, expanded by `sweep` (sweep.h). Throws Error(ExitCode::usage);
// also for duplicates.
std::vector<BenchMethod> bench_methods(const std::vector<std::string>& texts, const Sweep& sweep = {});

}  // namespace lamplighter

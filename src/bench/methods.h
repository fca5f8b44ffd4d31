#pragma once

#include <string>
#include <vector>

#include "bench/bench.h"
#include "bench/sweep.h"

namespace lamplighter {

// A method in one word: NAME[:KEY=VALUE]..., such as lantern++:k=10:lambda=3:tree=chain-4, with the words of
// method_options(); numbers of a list stand apart by /: lambda=3/2/2. Throws Error(ExitCode::usage); whether
// the values make sense is for resolve_method.
MethodOptions parse_method(const std::string& text);

// The same as flags: --method lantern++ --tree chain-4 --relax-k 10 --lambda 3.0,2.5.
std::string method_flags(const MethodOptions& options);

// The methods of a run, the baseline first, each with what is swept (sweep.h). Throws Error(ExitCode::usage),
// also when one is listed twice.
std::vector<BenchMethod> bench_methods(const std::vector<std::string>& texts, const Sweep& sweep = {});

}  // namespace lamplighter

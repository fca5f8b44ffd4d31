#pragma once

#include <string>
#include <vector>

#include "bench/bench.h"

namespace lamplighter {

struct MethodOption;

// An option and the values to try, as the user wrote them.
struct SweptOption {
  const MethodOption* option = nullptr;
  std::vector<std::string> values;
};
using Sweep = std::vector<SweptOption>;

// Parses the pieces of KEY=VALUE,VALUE,KEY=VALUE, split at commas. A piece with "=" starts the next option;
// keys as in method_options(). Throws Error(ExitCode::usage); also for duplicate options or values.
Sweep parse_sweep(const std::vector<std::string>& pieces);

// Expands every method by all combinations of the options that it uses and does not set; other options do not
// change it. Throws Error(ExitCode::usage) for an option that no method uses.
std::vector<BenchMethod> expand(std::vector<BenchMethod> methods, const Sweep& sweep);

}  // namespace lamplighter

#pragma once

#include <string>
#include <vector>

#include "bench/bench.h"

namespace lamplighter {

struct MethodOption;

// An option and the values that methods are to run with, as they were written.
struct SweptOption {
  const MethodOption* option = nullptr;
  std::vector<std::string> values;
};
using Sweep = std::vector<SweptOption>;

// From the pieces of KEY=VALUE,VALUE,KEY=VALUE, parted at the commas: a piece with "=" begins the next
// option, by the words of method_options(). Throws Error(ExitCode::usage), also when one is named or has a
// value twice.
Sweep parse_sweep(const std::vector<std::string>& pieces);

// Every method with every combination of the values of the options that it has a use for and does not name
// itself; others stay as they are. Throws Error(ExitCode::usage) for an option that no method takes up.
std::vector<BenchMethod> expand(std::vector<BenchMethod> methods, const Sweep& sweep);

}  // namespace lamplighter

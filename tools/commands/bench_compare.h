#pragma once

#include <string>
#include <vector>

#include "tools/terminal.h"

namespace lamplighter::cli {

// What changed from the first of two files of bench --export-json to the second, as a table or as JSON.
// Throws Error(ExitCode::input).
void compare_benches(const std::vector<std::string>& files, bool json, Terminal& terminal);

}  // namespace lamplighter::cli

#pragma once

#include <string>
#include <vector>

#include "tools/terminal.h"

namespace lamplighter::cli {

// Compares two files of bench --export-json, as a table or as JSON. Throws Error(ExitCode::input).
void compare_benches(const std::vector<std::string>& files, bool json, Terminal& terminal);

}  // namespace lamplighter::cli

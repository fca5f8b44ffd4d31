#pragma once

#include <string>

namespace lamplighter {

// Creates a folder and those above it, unless they exist. Throws Error(ExitCode::output).
void create_folder(const std::string& path);

}  // namespace lamplighter

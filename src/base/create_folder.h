#pragma once

#include <string>

namespace lamplighter {

// Creates a folder and those above it, unless they exist. Throws Error(ExitCode::output).
void create_folder(const std::string& path);

// Throws Error(ExitCode::output) when create_folder(path) would fail, or the folder could hold no files.
void check_folder(const std::string& path);

}  // namespace lamplighter

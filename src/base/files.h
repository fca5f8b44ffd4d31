#pragma once

#include <string>
#include <string_view>

#include "lamplighter/error.h"

namespace lamplighter {

// The whole file. Throws Error(code) naming the path and the system's reason.
std::string read_file(const std::string& path, ExitCode code = ExitCode::input);

// Everything standard input holds until its end.
std::string read_standard_input();

// Replaces `path` in one step: the bytes go to a temporary file in the same folder, are forced to the disk
// and renamed. Symbolic links are followed; devices and pipes are written in place. On failure nothing is
// left behind. Throws Error(ExitCode::output).
void write_file(const std::string& path, std::string_view bytes);

// Throws Error(ExitCode::output) when a later write_file(path) is bound to fail: a directory, a folder that
// is missing or not writable, a file that exists while `overwrite` is false.
void check_output(const std::string& path, bool overwrite);

// SHA-256 of a file as 64 hexadecimal digits, read in pieces. Throws Error(code).
std::string sha256_file(const std::string& path, ExitCode code = ExitCode::input);

// Joins a folder and a name; an absolute name stands alone.
std::string join_path(const std::string& folder, const std::string& name);

}  // namespace lamplighter

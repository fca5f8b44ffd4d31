#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <string_view>

#include "base/limits.h"
#include "lamplighter/error.h"

namespace lamplighter {

// Reads a plain file. Throws Error(code) with path and reason; also for devices and pipes, which may be
// endless, and for more than `most` bytes.
std::string read_file(const std::string& path, ExitCode code = ExitCode::input,
                      std::size_t most = std::numeric_limits<std::size_t>::max());

// Reads a file or pipe that the user names, or standard input for "-". Throws Error(ExitCode::input) with
// path and reason; also for devices, which may be endless, and for more than `most` bytes.
std::string read_input(const std::string& path, std::size_t most = limits::kInput);

// Replaces the content of `path` in one step: writes a temporary file in the same folder, syncs it and
// renames it. Follows symbolic links; writes devices and pipes in place. Without `overwrite` an existing file
// stays, even when another process creates it at the same moment. A failure leaves nothing behind. Throws
// Error(ExitCode::output).
void write_file(const std::string& path, std::string_view bytes, bool overwrite = true);

// Removes temporary files of write_file in a folder whose process was killed.
void remove_leftovers(const std::string& folder);

// Throws Error(ExitCode::output) when write_file(path) would fail: for a directory, a folder that is missing
// or not writable, or an existing file without `overwrite`.
void check_output(const std::string& path, bool overwrite);

// SHA-256 of a file as 64 hexadecimal digits. Reads in pieces. Throws Error(code).
std::string sha256_file(const std::string& path, ExitCode code = ExitCode::input);

// Joins a folder and a name. An absolute name is returned as it is.
std::string join_path(const std::string& folder, const std::string& name);

}  // namespace lamplighter

#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <string_view>

#include "base/limits.h"
#include "lamplighter/error.h"

namespace lamplighter {

// The whole of a plain file. Throws Error(code) naming the path and the reason, also for a device or a pipe,
// which may have no end, and for more than `most` bytes.
std::string read_file(const std::string& path, ExitCode code = ExitCode::input,
                      std::size_t most = std::numeric_limits<std::size_t>::max());

// The whole of a file or a pipe that a user names, or of standard input for "-". Throws
// Error(ExitCode::input) naming the path and the reason, also for a device, which may have no end, and for
// more than `most` bytes.
std::string read_input(const std::string& path, std::size_t most = limits::kInput);

// Makes `path` a file with these bytes in one step: they go to a temporary file in the same folder, are
// forced to the disk and renamed. Symbolic links are followed; devices and pipes are written in place.
// Without `overwrite` a file that exists stays, also one that another process makes at the same moment. On
// failure nothing is left behind. Throws Error(ExitCode::output).
void write_file(const std::string& path, std::string_view bytes, bool overwrite = true);

// Removes the temporary files that write_file left in a folder when its process was killed; those of
// processes that run stay.
void remove_leftovers(const std::string& folder);

// Throws Error(ExitCode::output) when a later write_file(path) is bound to fail: a directory, a folder that
// is missing or not writable, a file that exists while `overwrite` is false.
void check_output(const std::string& path, bool overwrite);

// SHA-256 of a file as 64 hexadecimal digits, read in pieces. Throws Error(code).
std::string sha256_file(const std::string& path, ExitCode code = ExitCode::input);

// Joins a folder and a name; an absolute name stands alone.
std::string join_path(const std::string& folder, const std::string& name);

}  // namespace lamplighter

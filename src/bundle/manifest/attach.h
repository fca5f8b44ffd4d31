#pragma once

#include <string>
#include <string_view>

#include "base/json.h"

namespace lamplighter {

// Adds a file to the bundle in `directory`, or replaces it, and updates manifest.json: its size and SHA-256
// under "files", and `entry` at the JSON pointer `pointer` ("/neighbours", "/trees/cpu"), which must name the
// file, by itself or as its "file". Other entries keep their order. Deletes a file that only the old entry
// named.
//
// The bundle is whole at every moment, also when the process is killed: an entry is taken out of the manifest
// before its file is replaced and put back when the file is there. Throws Error(ExitCode::bundle) when the
// manifest cannot be read or the file serves something else, Error(ExitCode::output) when writing fails.
void attach_file(const std::string& directory, const std::string& name, std::string_view bytes,
                 const std::string& pointer, const Json& entry);

}  // namespace lamplighter

#pragma once

#include <string>

#include "lamplighter/bundle.h"
#include "lamplighter/error.h"
#include "lamplighter/options.h"
#include "pipeline/requests/metadata.h"

namespace lamplighter::cli {

// Throws Error(ExitCode::input) where a picture names files and `given`, the method of the flags, does not
// say itself which are read.
void check_files(const std::string& picture, const MethodOptions& merged, const MethodOptions& given);

// What to tell of `error`, which a run met that takes its settings from `picture`: where the picture's own
// settings cannot be drawn with the bundle, that, as an error of input that names the picture. `runtime` is
// what flags alone say.
Error blame_picture(const std::string& picture, const Recorded& recorded, const std::string& bundle,
                    const RuntimeOptions& runtime, const Error& error);

}  // namespace lamplighter::cli

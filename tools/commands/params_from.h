#pragma once

#include <string>

#include "lamplighter/error.h"
#include "lamplighter/options.h"
#include "pipeline/metadata/metadata.h"

namespace lamplighter::cli {

// Refuses files that only the image names: `given`, the options of the flags, must name them. Throws
// Error(ExitCode::input).
void check_files(const std::string& image, const MethodOptions& merged, const MethodOptions& given);

// Attributes `error`, which ended a run with the settings of `image`. If those settings alone do not fit the
// bundle, returns an input error that names the image, otherwise `error`. `runtime` holds the options of the
// flags.
Error blame_image(const std::string& image, const Recorded& recorded, const std::string& bundle,
                  const RuntimeOptions& runtime, const Error& error);

}  // namespace lamplighter::cli

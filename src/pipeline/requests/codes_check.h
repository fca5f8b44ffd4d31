#pragma once

#include <string>

#include "lamplighter/bundle.h"
#include "lamplighter/pipeline.h"

namespace lamplighter {

// What codes of one picture are: all of it, or its first rows, as a picture that grows has them.
enum class CodeRows { all, first };

// Throws Error(ExitCode::input) beginning with `where` unless the bundle's image decoder takes these codes:
// ids of its codebook, in one of the bundle's grids. A bundle of a decoder alone names no grids and takes any
// of limits::kCodes codes whose picture has sides of limits::kPngSide pixels at most.
void check_codes(const Manifest& manifest, const Codes& codes, const std::string& where, CodeRows rows);

}  // namespace lamplighter

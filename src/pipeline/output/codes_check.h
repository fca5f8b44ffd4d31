#pragma once

#include <string>

#include "lamplighter/bundle.h"
#include "lamplighter/pipeline.h"

namespace lamplighter {

// Which rows the codes of an image hold: all, or the first ones, as while it is generated.
enum class CodeRows { all, first };

// Throws Error(ExitCode::input) beginning with `where` unless the bundle's image decoder takes these codes:
// ids of its codebook, in one of the bundle's grids. A bundle of a decoder alone names no grids and takes any
// of limits::kCodes codes whose image has sides of limits::kImageSide pixels at most.
void check_codes(const Manifest& manifest, const Codes& codes, const std::string& where, CodeRows rows);

}  // namespace lamplighter

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lamplighter/bundle.h"
#include "lamplighter/options.h"

// Regions of images in whole tokens.
namespace lamplighter {

// Parses "X,Y,WIDTH,HEIGHT"; `name` is what messages call the text. Throws Error(ExitCode::usage).
Region parse_region(std::string_view text, const std::string& name);
// "X,Y,WIDTH,HEIGHT".
std::string region_text(const Region& region);

// The region that all tokens have which this one touches. Throws Error(ExitCode::usage) where it is no part
// of an image of the grid.
Region whole_tokens(const Grid& grid, const Region& region);

// The codes of an image, raster order, with -1 in the place of those that are generated anew. Throws
// Error(ExitCode::usage) where they do not fit the region, or the region says what there is not.
std::vector<std::int32_t> kept_outside(const Grid& grid, const Region& region,
                                       const std::vector<std::int32_t>& codes);

// How many tokens of an image a request that fits the grid generates.
std::int64_t generated_tokens(const Grid& grid, const Request& request);

}  // namespace lamplighter

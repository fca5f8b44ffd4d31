#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lamplighter/bundle.h"
#include "lamplighter/options.h"

// Regions of images in whole tokens.
namespace lamplighter {

// What an autoregressive model knows while it generates a region.
inline constexpr const char* kRegionSight =
    "the model sees what lies above and to the left of a token, not what comes later";

// Parses "X,Y,WIDTH,HEIGHT"; `name` is what messages call the text. Throws Error(ExitCode::usage).
Region parse_region(std::string_view text, const std::string& name);
// "X,Y,WIDTH,HEIGHT".
std::string region_text(const Region& region);

// The region that all tokens have which this one touches. Throws Error(ExitCode::usage) where it is no part
// of an image of the grid.
Region whole_tokens(const Grid& grid, const Region& region);
// A line on the whole tokens of a region; empty where it has no others. `name` is what it calls the region.
std::string note_whole_tokens(const std::string& name, const Region& given, const Region& whole);

// The codes of an image, raster order, with -1 in the place of those that are generated anew. Throws
// Error(ExitCode::usage) where they do not fit the region, or the region says what there is not.
std::vector<std::int32_t> kept_outside(const Grid& grid, const Region& region,
                                       const std::vector<std::int32_t>& codes);

// How many tokens of an image a request that fits the grid generates, among the first `positions` of it.
std::int64_t generated_tokens(const Grid& grid, const Request& request, std::int64_t positions);
inline std::int64_t generated_tokens(const Grid& grid, const Request& request) {
  return generated_tokens(grid, request, grid.tokens());
}

// The images that are generated for a request: all candidates.
inline std::size_t count_candidates(const Request& request) {
  return request.region ? static_cast<std::size_t>(std::max(request.region->candidates, 1)) : 1;
}

}  // namespace lamplighter

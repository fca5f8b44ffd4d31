#pragma once

#include <cstdint>
#include <vector>

#include "lamplighter/bundle.h"
#include "lamplighter/options.h"

// The scale of guidance, token by token. Of codes a token's own place decides it, so every method draws with
// the same; of continuous tokens how many are drawn before it.
namespace lamplighter {

bool is_guided(const SamplingOptions& sampling);
// Whether tokens of a picture differ in it.
bool guidance_varies(const GuidanceSchedule& schedule, const SamplingOptions& sampling);
// Those of tokens 0 .. count - 1 in the order in which they are drawn, raster order of codes, which may go on
// past the end of the grid; 1: not guided.
std::vector<float> guidance_scales(const GuidanceSchedule& schedule, const Grid& grid,
                                   const SamplingOptions& sampling, std::int64_t count);

}  // namespace lamplighter

#pragma once

#include <cstdint>
#include <vector>

#include "lamplighter/bundle.h"
#include "lamplighter/options.h"

// The scale of guidance of every token. For codes it depends on the token's position alone, so it is the same
// for every method; for continuous tokens it depends on how many were generated before.
namespace lamplighter {

bool is_guided(const SamplingOptions& sampling);
// Whether it differs between tokens of an image.
bool guidance_varies(const GuidanceSchedule& schedule, const SamplingOptions& sampling);
// The scales of the tokens 0 .. count - 1 in the order of generation, which is raster order for codes. They
// may go on past the end of the grid. 1: not guided.
std::vector<float> guidance_scales(const GuidanceSchedule& schedule, const Grid& grid,
                                   const SamplingOptions& sampling, std::int64_t count);

}  // namespace lamplighter

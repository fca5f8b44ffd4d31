#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "image/canvas.h"
#include "lamplighter/pipeline.h"

namespace lamplighter {

// The colour of rows that are not generated yet.
inline constexpr Colour kNotGenerated{128, 128, 128};

// Decodes the rows of tokens that are complete, one at least; kNotGenerated below. `ids`: tokens so far
// in raster order; `decode` turns codes into an image, as TextToImage::decode does.
Image decode_rows(const std::vector<std::int32_t>& ids, int rows, int columns,
                  const std::function<Image(const Codes& codes)>& decode);

// The same for an image of this request. Around a region the kept image shows; tokens that are not generated
// yet are kNotGenerated.
Image decode_part(const std::vector<std::int32_t>& ids, const Grid& grid, const Request& request,
                  const std::function<Image(const Codes& codes)>& decode);

}  // namespace lamplighter

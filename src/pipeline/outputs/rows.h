#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "image/canvas.h"
#include "lamplighter/pipeline.h"

namespace lamplighter {

// Of what is not drawn yet.
inline constexpr Colour kNotDrawn{128, 128, 128};

// The picture of the rows of tokens that are complete, one at least, kNotDrawn below. `ids`: tokens so far in
// raster order; `decode` turns codes into a picture, as TextToImage::decode does.
Image paint_rows(const std::vector<std::int32_t>& ids, int rows, int columns,
                 const std::function<Image(const Codes& codes)>& decode);

}  // namespace lamplighter

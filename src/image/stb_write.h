#pragma once

#include <string>

#include "lamplighter/image.h"

// Encoders of stb_image_write. Both throw Error (output, memory).
namespace lamplighter::stb {

std::string encode_png(const Image& image);
std::string encode_jpeg(const Image& image, int quality);  // 1 .. 100

}  // namespace lamplighter::stb

#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "lamplighter/image.h"

namespace lamplighter {

// Kinds of picture files besides PNG. Encoders throw Error (output, memory); the Exif block of a file is
// nothing where it has none or is damaged.

// At quality 95, colours at full resolution.
std::string encode_jpeg(const Image& image, const PictureText& text);
std::optional<std::string_view> exif_of_jpeg(std::string_view file);

// Lossless. Throws Error(ExitCode::output) in builds without libwebp, where can_encode_webp() is false.
bool can_encode_webp();
std::string encode_webp(const Image& image, const PictureText& text);
std::optional<std::string_view> exif_of_webp(std::string_view file);

}  // namespace lamplighter

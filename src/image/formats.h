#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "lamplighter/image.h"

namespace lamplighter {

// The ending of a name in small letters, with its dot: ".png". Empty: none.
std::string ending_of(const std::string& path);
// Whether a name has the ending of an image, also of a format that cannot be written.
bool is_image_name(const std::string& path);

// The format of an image by the first bytes of its file: "PNG", "JPEG", "WebP", "GIF" ... Empty: none that is
// known.
std::string image_kind(std::string_view bytes);

// Image formats besides PNG. Encoders throw Error (output, memory). The Exif block is empty when a file has
// none or is damaged.

// quality: 1 to 100, above 90 without chroma subsampling.
std::string encode_jpeg(const Image& image, const ImageText& text, int quality = 95);
std::optional<std::string_view> exif_of_jpeg(std::string_view file);

// quality: 0 to 99, or 100: lossless. Throws Error(ExitCode::output) in builds without libwebp.
bool has_libwebp();
std::string encode_webp(const Image& image, const ImageText& text, int quality = 100);
std::optional<std::string_view> exif_of_webp(std::string_view file);

}  // namespace lamplighter

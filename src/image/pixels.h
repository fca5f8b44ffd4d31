#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/limits.h"
#include "lamplighter/image.h"

namespace lamplighter {

// Pixels with their opacity: pixels[(y * width + x) * 4 + channel], red, green, blue, alpha.
struct ClearImage {
  int width = 0, height = 0;
  std::vector<std::uint8_t> pixels;
};

// The pixels of a file whose first bytes say which kind of image it is: PNG, JPEG or WebP. `path` names it in
// messages, `most`: pixels in all. Throw Error(ExitCode::input).
ClearImage parse_clear_image(std::string_view bytes, const std::string& path,
                             std::uint64_t most = limits::kImagePixels);

// The same in front of white.
Image parse_image(std::string_view bytes, const std::string& path, std::uint64_t most = limits::kImagePixels);

// The kinds that this build reads: "a PNG, JPEG or WebP" and the word behind it.
std::string a_readable(const std::string& what);

// A decoder for each kind. Sizes are checked before memory for pixels is taken. Files that are cut off are
// refused. JPEG and WebP images are turned as their Exif data say. Throw Error(ExitCode::input), also where
// the build lacks the library.
ClearImage decode_png(std::string_view bytes, const std::string& path, std::uint64_t most);
bool has_libjpeg();
ClearImage decode_jpeg(std::string_view bytes, const std::string& path, std::uint64_t most);
ClearImage decode_webp(std::string_view bytes, const std::string& path, std::uint64_t most);

// What decoders share: Error(ExitCode::input) with a reason, and for more than `most` pixels.
[[noreturn]] void refuse_image(const std::string& path, const std::string& why);
void require_pixels(std::uint64_t width, std::uint64_t height, const std::string& path, std::uint64_t most);
std::size_t area_of(int width, int height);

// The image as it is to be seen. orientation: 1 to 8 as in Exif 2.32, section 4.6.4; others change nothing.
ClearImage turned(ClearImage image, int orientation);

}  // namespace lamplighter

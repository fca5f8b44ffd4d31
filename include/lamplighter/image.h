#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "lamplighter/api.h"

namespace lamplighter {

// 8-bit RGB picture, rows from top to bottom: pixels[(y * width + x) * 3 + channel].
struct Image {
  int width = 0, height = 0;
  std::vector<std::uint8_t> pixels;
};

// Text chunks of a PNG file: keyword and UTF-8 text.
using PngText = std::vector<std::pair<std::string, std::string>>;

// The bytes of a PNG file; equal input gives equal bytes.
LAMPLIGHTER_API std::string encode_png(const Image& image, const PngText& text = {});

// Writes a PNG file atomically: a temporary file in the same folder, then a rename. Without `overwrite` a
// file that exists stays. Throws Error(ExitCode::output).
LAMPLIGHTER_API void write_png(const std::string& path, const Image& image, const PngText& text = {},
                               bool overwrite = true);

// The pixels of a PNG file with sides up to 16,384. Throws Error(ExitCode::input).
LAMPLIGHTER_API Image read_png(const std::string& path);

// The text chunks of a PNG file (tEXt, zTXt and iTXt). Throws Error(ExitCode::input), also for more than
// 1,000 of them or 16 MiB in all.
LAMPLIGHTER_API PngText read_png_text(const std::string& path);

// All pictures on one sheet, row by row, `gap` pixels apart, on a white ground. Pictures of different sizes
// are centred in equal cells.
LAMPLIGHTER_API Image contact_sheet(const std::vector<Image>& images, int columns, int gap = 2);

// The same with as many columns as rows, or one more.
LAMPLIGHTER_API Image square_sheet(const std::vector<Image>& images, int gap = 2);

}  // namespace lamplighter

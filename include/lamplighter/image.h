#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "lamplighter/api.h"

namespace lamplighter {

// 8-bit RGB image, rows from top to bottom: pixels[(y * width + x) * 3 + channel].
struct Image {
  int width = 0, height = 0;
  std::vector<std::uint8_t> pixels;
};

// Texts of an image file: keyword and UTF-8 text.
using ImageText = std::vector<std::pair<std::string, std::string>>;

// The bytes of a PNG file; equal input gives equal bytes.
LAMPLIGHTER_API std::string encode_png(const Image& image, const ImageText& text = {});

// Writes a PNG file atomically: a temporary file in the same folder, then a rename. Without `overwrite` a
// file that exists stays. Throws Error(ExitCode::output).
LAMPLIGHTER_API void write_png(const std::string& path, const Image& image, const ImageText& text = {},
                               bool overwrite = true);

// The pixels of a PNG, JPEG or WebP file (the latter in builds with libjpeg and libwebp) with sides up to
// 16,384 and 2^26 pixels in all. Of 16 bits the upper 8 are used, transparent pixels show a white ground, and
// JPEG and WebP images are turned as their Exif data say. Throws Error(ExitCode::input), which names other
// kinds of files.
LAMPLIGHTER_API Image read_image(const std::string& path);

// How an image gets other sides. crop: it is scaled to cover them, and the middle stays. pad: it is scaled
// to fit inside, and the rest is white. stretch: each side is scaled on its own.
enum class Fit { crop, pad, stretch };

// An image with these sides. Scales with Lanczos' filter over three lobes, widened where it becomes smaller.
// Throws Error(ExitCode::usage) for sides outside 1..16,384.
LAMPLIGHTER_API Image fit_image(const Image& image, int width, int height, Fit fit = Fit::crop);

// Writes an image as write_png does, as the kind of file that its name ends in: .jpg or .jpeg (quality 95),
// .webp (lossless; in builds with libwebp), else PNG. JPEG and WebP files keep the texts "parameters" and
// "lamplighter" as Exif data; JPEG has room for 64 kB.
LAMPLIGHTER_API void write_image(const std::string& path, const Image& image, const ImageText& text = {},
                                 bool overwrite = true);

// What is expected in the position of a name that ends in a kind of image which write_image cannot write;
// empty where it can.
LAMPLIGHTER_API std::string refuse_image_name(const std::string& path);

// The text chunks of a PNG file (tEXt, zTXt and iTXt), or what write_image keeps in a JPEG or WebP file as
// "lamplighter". Throws Error(ExitCode::input), also for more than 1,000 of them or 16 MiB in all.
LAMPLIGHTER_API ImageText read_image_text(const std::string& path);

// All images on one sheet, row by row, `gap` pixels apart, on a white ground. Images of different sizes
// are centred in equal cells. Throws Error(ExitCode::usage) where there are no images or no columns.
LAMPLIGHTER_API Image contact_sheet(const std::vector<Image>& images, int columns, int gap = 2);

// The same with as many columns as rows, or one more.
LAMPLIGHTER_API Image square_sheet(const std::vector<Image>& images, int gap = 2);

}  // namespace lamplighter

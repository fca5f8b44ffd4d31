#include "image/pixels.h"

#include <algorithm>
#include <utility>

#include "base/files.h"
#include "base/format.h"
#include "image/formats.h"
#include "lamplighter/error.h"

namespace lamplighter {
namespace {

// Colours of a pixel in front of white.
void append_on_white(const std::uint8_t* rgba, std::vector<std::uint8_t>& pixels) {
  const unsigned alpha = rgba[3];
  for (int channel = 0; channel < 3; ++channel)
    pixels.push_back(static_cast<std::uint8_t>((rgba[channel] * alpha + 255 * (255 - alpha) + 127) / 255));
}

}  // namespace

void refuse_image(const std::string& path, const std::string& why) {
  throw Error(ExitCode::input, path + ": " + why);
}

void require_pixels(std::uint64_t width, std::uint64_t height, const std::string& path, std::uint64_t most) {
  if (width <= limits::kImageSide && height <= limits::kImageSide && width * height <= most) return;
  const std::string expected =
      width * height > most ? std::to_string(most) : std::to_string(limits::kImageSide) + " a side";
  refuse_image(path, "got " + std::to_string(width) + "x" + std::to_string(height) +
                         " pixels, expected at most " + expected + "; make it smaller");
}

std::size_t area_of(int width, int height) {
  return static_cast<std::size_t>(width) * static_cast<std::size_t>(height);
}

std::string a_readable(const std::string& what) {
  std::string kinds = "a PNG";
  if (has_libjpeg() && has_libwebp()) return kinds + ", JPEG or WebP " + what;
  if (has_libjpeg()) kinds += " or JPEG";
  if (has_libwebp()) kinds += " or WebP";
  return kinds + " " + what;
}

ClearImage turned(ClearImage image, int orientation) {
  if (orientation < 2 || orientation > 8) return image;
  const bool swaps = orientation >= 5;
  const bool from_right = orientation == 2 || orientation == 3 || orientation >= 7;
  const bool from_below = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  ClearImage result{swaps ? image.height : image.width, swaps ? image.width : image.height, {}};
  result.pixels.resize(image.pixels.size());
  auto to = result.pixels.begin();
  for (int y = 0; y < result.height; ++y) {
    for (int x = 0; x < result.width; ++x) {
      int column = swaps ? y : x, row = swaps ? x : y;
      if (from_right) column = image.width - 1 - column;
      if (from_below) row = image.height - 1 - row;
      const std::size_t from = 4 * (area_of(image.width, row) + static_cast<std::size_t>(column));
      to = std::copy_n(image.pixels.data() + from, 4, to);
    }
  }
  return result;
}

ClearImage parse_clear_image(std::string_view bytes, const std::string& path, std::uint64_t most) {
  const std::string kind = image_kind(bytes);
  if (kind == "PNG") return decode_png(bytes, path, most);
  if (kind == "JPEG" && has_libjpeg()) return decode_jpeg(bytes, path, most);
  if (kind == "WebP" && has_libwebp()) return decode_webp(bytes, path, most);
  if (kind.empty()) {
    refuse_image(path, std::string("got ") + (bytes.empty() ? "an empty file" : "no image") + ", expected " +
                           a_readable("image"));
  }
  const bool is_left_out = kind == "JPEG" || kind == "WebP";
  refuse_image(path, "got an image in the format " + kind + ", expected " + a_readable("image") +
                         (is_left_out ? ": this build has no lib" : "") +
                         (is_left_out ? (kind == "JPEG" ? "jpeg" : "webp") : "") + "; convert it to PNG");
}

Image parse_image(std::string_view bytes, const std::string& path, std::uint64_t most) {
  const ClearImage clear = parse_clear_image(bytes, path, most);
  Image image{clear.width, clear.height, {}};
  image.pixels.reserve(3 * area_of(clear.width, clear.height));
  for (std::size_t at = 0; at < clear.pixels.size(); at += 4)
    append_on_white(clear.pixels.data() + at, image.pixels);
  return image;
}

Image read_image(const std::string& path) {
  return parse_image(read_input(path), path);
}

}  // namespace lamplighter

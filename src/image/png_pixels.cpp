#include <zlib.h>

#include "base/files.h"
#include "image/big_endian.h"
#include "image/formats.h"
#include "image/png_chunks.h"
#include "lamplighter/error.h"
#include "lamplighter/image.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_ONLY_PNG
#define STBI_NO_SIMD  // SIMD code serves other formats only
#define STBI_NO_STDIO
#define STBI_MAX_DIMENSIONS lamplighter::limits::kPngSide
#include <stb_image.h>
#pragma GCC diagnostic pop

#include <memory>

namespace lamplighter {

namespace {

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw Error(ExitCode::input, path + ": " + why);
}

void require_png(std::string_view bytes, const std::string& path) {
  const std::string kind = image_kind(bytes);
  if (kind == "PNG") return;
  if (kind.empty())
    refuse(path,
           std::string("got ") + (bytes.empty() ? "an empty file" : "no image") + ", expected a PNG image");
  refuse(path, "got an image in the format " + kind + ", expected a PNG image; convert it to PNG");
}

// stb_image trusts the declared chunk length and image size, and allocates memory for them.
void require_content(std::string_view bytes, const std::string& path, std::uint64_t most) {
  constexpr std::size_t kFrame = 12;      // length, type and CRC-32
  constexpr std::uint64_t kRatio = 1032;  // deflate expands at most this much
  const auto damaged = [&](const char* why) { refuse(path, std::string("damaged PNG image: ") + why); };
  if (bytes.size() >= 24) {
    const std::uint64_t width = read_32(bytes.substr(16)), height = read_32(bytes.substr(20));
    if (width * height / 8 > kRatio * bytes.size()) damaged("it is too small for its pixels");  // a bit each
    if (width <= limits::kPngSide && height <= limits::kPngSide && width * height > most) {
      refuse(path, "got " + std::to_string(width) + "x" + std::to_string(height) +
                       " pixels, expected at most " + std::to_string(most) + "; make it smaller");
    }
  }
  for (bytes.remove_prefix(kPngSignature.size()); bytes.size() >= kFrame;) {
    const std::size_t length = read_32(bytes);
    if (length > bytes.size() - kFrame) damaged("a chunk is cut off");
    const std::string_view body = bytes.substr(4, 4 + length);
    if (crc32_z(0, reinterpret_cast<const Bytef*>(body.data()), body.size()) !=
        read_32(bytes.substr(8 + length)))
      damaged("the checksum of a chunk is wrong");
    if (body.substr(0, 4) == "IEND") return;  // data after it does not belong to the image
    bytes.remove_prefix(kFrame + length);
  }
  damaged("it is cut off");
}

// Colours of a pixel in front of white.
void append_on_white(const stbi_uc* rgba, std::vector<std::uint8_t>& pixels) {
  const unsigned alpha = rgba[3];
  for (int channel = 0; channel < 3; ++channel)
    pixels.push_back(static_cast<std::uint8_t>((rgba[channel] * alpha + 255 * (255 - alpha) + 127) / 255));
}

using Decoded = std::unique_ptr<stbi_uc, void (*)(void*)>;

// Four bytes for each pixel.
Decoded decode(std::string_view bytes, const std::string& path, std::uint64_t most, int& width, int& height) {
  require_png(bytes, path);
  require_content(bytes, path, most);
  int channels = 0;
  Decoded pixels(
      stbi_load_from_memory(reinterpret_cast<const stbi_uc*>(bytes.data()), static_cast<int>(bytes.size()),
                            &width, &height, &channels, STBI_rgb_alpha),
      stbi_image_free);
  if (pixels == nullptr) refuse(path, std::string("damaged PNG image: ") + stbi_failure_reason());
  return pixels;
}

std::size_t area_of(int width, int height) {
  return static_cast<std::size_t>(width) * static_cast<std::size_t>(height);
}

}  // namespace

Image parse_png(std::string_view bytes, const std::string& path, std::uint64_t most) {
  Image image;
  const Decoded pixels = decode(bytes, path, most, image.width, image.height);
  const std::size_t area = area_of(image.width, image.height);
  image.pixels.reserve(3 * area);
  for (std::size_t pixel = 0; pixel < area; ++pixel) append_on_white(pixels.get() + 4 * pixel, image.pixels);
  return image;
}

ClearImage parse_clear_png(std::string_view bytes, const std::string& path, std::uint64_t most) {
  ClearImage image;
  const Decoded pixels = decode(bytes, path, most, image.width, image.height);
  image.pixels.assign(pixels.get(), pixels.get() + 4 * area_of(image.width, image.height));
  return image;
}

Image read_png(const std::string& path) {
  return parse_png(read_input(path), path);
}

}  // namespace lamplighter

#include "base/files.h"
#include "image/big_endian.h"
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

// Checks sizes first: stb_image trusts the declared chunk length and image size, and allocates memory for
// them.
void require_content(std::string_view bytes, const std::string& path) {
  const auto refuse = [&](const char* why) {
    throw Error(ExitCode::input, path + ": not a PNG image: " + why);
  };
  constexpr std::size_t kFrame = 12;      // length, type and CRC-32
  constexpr std::uint64_t kRatio = 1032;  // deflate expands at most this much
  if (bytes.substr(0, kPngSignature.size()) != kPngSignature) return;
  if (bytes.size() >= 24) {
    const std::uint64_t area = std::uint64_t{read_32(bytes.substr(16))} * read_32(bytes.substr(20));
    if (area / 8 > kRatio * bytes.size()) refuse("it is too small for its pixels");  // a bit per pixel
  }
  for (bytes.remove_prefix(kPngSignature.size()); bytes.size() >= kFrame;) {
    const std::size_t length = read_32(bytes);
    if (length > bytes.size() - kFrame) refuse("a chunk is cut off");
    if (bytes.substr(4, 4) == "IEND") return;  // data after it does not belong to the image
    bytes.remove_prefix(kFrame + length);
  }
}

}  // namespace

Image read_png(const std::string& path) {
  const std::string bytes = read_input(path);
  require_content(bytes, path);
  Image image;
  int channels = 0;
  const std::unique_ptr<stbi_uc, void (*)(void*)> pixels(
      stbi_load_from_memory(reinterpret_cast<const stbi_uc*>(bytes.data()), static_cast<int>(bytes.size()),
                            &image.width, &image.height, &channels, STBI_rgb),
      stbi_image_free);
  if (pixels == nullptr) throw Error(ExitCode::input, path + ": not a PNG image: " + stbi_failure_reason());
  const auto area = static_cast<std::size_t>(image.width) * static_cast<std::size_t>(image.height);
  image.pixels.assign(pixels.get(), pixels.get() + 3 * area);
  return image;
}

}  // namespace lamplighter

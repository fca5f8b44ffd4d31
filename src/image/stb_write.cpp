#include "image/stb_write.h"

#include <zlib.h>

#include <cstdlib>

#include "base/format.h"
#include "base/limits.h"
#include "lamplighter/error.h"

namespace {

// Replaces stb's compressor: zlib compresses better in the same time.
unsigned char* compress_with_zlib(unsigned char* data, int size, int* compressed_size, int quality) {
  uLongf bound = compressBound(static_cast<uLong>(size));
  auto* buffer = static_cast<unsigned char*>(std::malloc(bound));
  if (buffer == nullptr || compress2(buffer, &bound, data, static_cast<uLong>(size), quality) != Z_OK) {
    std::free(buffer);
    return nullptr;
  }
  *compressed_size = static_cast<int>(bound);
  return buffer;
}

}  // namespace

// Its JPEG writer shifts negative numbers. Every compiler gives the result that C++20 defines.
#if defined(__clang__)
#pragma clang attribute push(__attribute__((no_sanitize("shift"))), apply_to = function)
#endif
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STB_IMAGE_WRITE_STATIC
#define STBI_WRITE_NO_STDIO
#define STBIW_ZLIB_COMPRESS compress_with_zlib
#include <stb_image_write.h>
#pragma GCC diagnostic pop
#if defined(__clang__)
#pragma clang attribute pop
#endif

namespace lamplighter::stb {
namespace {

constexpr int kChannels = 3;

void append_to_string(void* context, void* data, int size) {
  static_cast<std::string*>(context)->append(static_cast<const char*>(data), static_cast<std::size_t>(size));
}

void check(const Image& image, const char* kind) {
  const bool sized = image.width > 0 && image.height > 0 && image.width <= limits::kImageSide &&
                     image.height <= limits::kImageSide;
  if (sized && image.pixels.size() == std::size_t{kChannels} * static_cast<std::size_t>(image.width) *
                                          static_cast<std::size_t>(image.height))
    return;
  throw Error(ExitCode::output, "cannot encode an image of " + sides(image.width, image.height) +
                                    " pixels and " + std::to_string(image.pixels.size()) + " bytes as " +
                                    kind);
}

// `done` is false when memory ran out.
std::string finish(bool done, std::string bytes, const char* kind) {
  if (!done) throw Error(ExitCode::memory, std::string("cannot encode a ") + kind + " file: out of memory");
  return bytes;
}

}  // namespace

std::string encode_png(const Image& image) {
  check(image, "PNG");
  std::string bytes;
  const int done = stbi_write_png_to_func(append_to_string, &bytes, image.width, image.height, kChannels,
                                          image.pixels.data(), image.width * kChannels);
  return finish(done != 0, std::move(bytes), "PNG");
}

std::string encode_jpeg(const Image& image, int quality) {
  check(image, "JPEG");
  std::string bytes;
  const int done = stbi_write_jpg_to_func(append_to_string, &bytes, image.width, image.height, kChannels,
                                          image.pixels.data(), quality);
  return finish(done != 0, std::move(bytes), "JPEG");
}

}  // namespace lamplighter::stb

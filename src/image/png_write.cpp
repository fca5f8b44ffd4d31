#include <zlib.h>

#include <cstdlib>
#include <limits>
#include <memory>

#include "base/files.h"
#include "image/png_chunks.h"
#include "lamplighter/error.h"
#include "lamplighter/image.h"

namespace {

// stb_image_write calls this to compress; zlib packs tighter than its own compressor at the same cost.
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

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STB_IMAGE_WRITE_STATIC
#define STBI_WRITE_NO_STDIO
#define STBIW_ZLIB_COMPRESS compress_with_zlib
#include <stb_image_write.h>
#pragma GCC diagnostic pop

namespace lamplighter {
namespace {

constexpr int kChannels = 3;
constexpr std::size_t kHeaderEnd = 8 + 25;  // signature and IHDR chunk, after which text may stand

std::string big_endian(std::uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 0xFFU);
  return bytes;
}

void append_to_string(void* context, void* data, int size) {
  static_cast<std::string*>(context)->append(static_cast<const char*>(data), static_cast<std::size_t>(size));
}

}  // namespace

std::string encode_png_chunk(std::string_view type, std::string_view data) {
  std::string body(type);
  body.append(data);
  const uLong crc = crc32_z(0, reinterpret_cast<const Bytef*>(body.data()), body.size());
  return big_endian(static_cast<std::uint32_t>(data.size())) + body +
         big_endian(static_cast<std::uint32_t>(crc));
}

std::string encode_png_text(std::string_view keyword, std::string_view text) {
  // Keyword, then: not compressed, method 0, no language, no translated keyword.
  std::string data(keyword);
  data.append(5, '\0');
  data.append(text);
  return encode_png_chunk("iTXt", data);
}

std::string encode_png(const Image& image, const PngText& text) {
  const bool sized = image.width > 0 && image.height > 0 && image.width <= limits::kPngSide &&
                     image.height <= limits::kPngSide;
  if (!sized || image.pixels.size() != std::size_t{kChannels} * static_cast<std::size_t>(image.width) *
                                           static_cast<std::size_t>(image.height)) {
    throw Error(ExitCode::output, "cannot encode a picture of " + std::to_string(image.width) + "x" +
                                      std::to_string(image.height) + " pixels and " +
                                      std::to_string(image.pixels.size()) + " bytes as PNG");
  }
  std::string bytes;
  if (stbi_write_png_to_func(append_to_string, &bytes, image.width, image.height, kChannels,
                             image.pixels.data(), image.width * kChannels) == 0) {
    throw Error(ExitCode::memory, "cannot encode a PNG file: out of memory");
  }
  std::string chunks;
  for (const auto& [keyword, value] : text) chunks += encode_png_text(keyword, value);
  return bytes.insert(kHeaderEnd, chunks);
}

void write_png(const std::string& path, const Image& image, const PngText& text, bool overwrite) {
  write_file(path, encode_png(image, text), overwrite);
}

}  // namespace lamplighter

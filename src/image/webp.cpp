#if defined(LAMPLIGHTER_WITH_WEBP)
#include <webp/encode.h>
#endif

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/format.h"
#include "image/exif.h"
#include "image/formats.h"
#include "lamplighter/error.h"

namespace lamplighter {
namespace {

// WebP numbers are little-endian (WebP container specification).
std::size_t read_little(std::string_view bytes) {
  std::size_t value = 0;
  for (int i = 3; i >= 0; --i)
    value = value << 8U | static_cast<unsigned char>(bytes[static_cast<std::size_t>(i)]);
  return value;
}

constexpr std::size_t kFileHeader = 12, kChunkHeader = 8;  // bytes

#if defined(LAMPLIGHTER_WITH_WEBP)
std::string encode_little(std::size_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i, value >>= 8U) text += static_cast<char>(value & 0xFFU);
  return text;
}

std::string chunk(std::string_view name, std::string_view content) {
  std::string bytes = std::string(name) + encode_little(content.size(), 4) + std::string(content);
  if (content.size() % 2 != 0) bytes += '\0';
  return bytes;
}

// Adds an Exif block: extended header, the chunk of the image, the block.
std::string with_exif(const Image& image, std::string_view file, const std::string& exif) {
  constexpr char has_exif = 0x08;
  const std::string extent = encode_little(static_cast<std::size_t>(image.width) - 1, 3) +
                             encode_little(static_cast<std::size_t>(image.height) - 1, 3);
  const std::string content = "WEBP" +
                              chunk("VP8X", std::string(1, has_exif) + std::string(3, '\0') + extent) +
                              std::string(file.substr(kFileHeader)) + chunk("EXIF", exif);
  return "RIFF" + encode_little(content.size(), 4) + content;
}
#endif

}  // namespace

#if defined(LAMPLIGHTER_WITH_WEBP)
bool can_encode_webp() {
  return true;
}

std::string encode_webp(const Image& image, const ImageText& text, int quality) {
  std::uint8_t* data = nullptr;
  const std::uint8_t* pixels = image.pixels.data();
  const int stride = image.width * 3;
  const std::size_t size =
      quality >= 100
          ? WebPEncodeLosslessRGB(pixels, image.width, image.height, stride, &data)
          : WebPEncodeRGB(pixels, image.width, image.height, stride, static_cast<float>(quality), &data);
  const std::unique_ptr<std::uint8_t, void (*)(void*)> guard(data, WebPFree);
  if (size == 0) {
    throw Error(ExitCode::output, "cannot encode an image of " + sides(image.width, image.height) +
                                      " pixels as WebP, expected at most 16383 a side; write PNG");
  }
  const std::string_view file(reinterpret_cast<const char*>(data), size);
  return text.empty() ? std::string(file) : with_exif(image, file, encode_exif(text));
}
#else
bool can_encode_webp() {
  return false;
}

std::string encode_webp(const Image& /*image*/, const ImageText& /*text*/, int /*quality*/) {
  throw Error(ExitCode::output, "cannot write WebP files: this build has no libwebp");
}
#endif

std::optional<std::string_view> exif_of_webp(std::string_view file) {
  file.remove_prefix(kFileHeader);
  while (file.size() >= kChunkHeader) {
    const std::size_t size = read_little(file.substr(4));
    if (size > file.size() - kChunkHeader) break;
    if (file.substr(0, 4) == "EXIF") return file.substr(kChunkHeader, size);
    file.remove_prefix(std::min(file.size(), kChunkHeader + size + size % 2));
  }
  return std::nullopt;
}

}  // namespace lamplighter

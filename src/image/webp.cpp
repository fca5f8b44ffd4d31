#if defined(LAMPLIGHTER_WITH_WEBP)
#include <webp/decode.h>
#include <webp/encode.h>
#endif

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/format.h"
#include "image/byte_order.h"
#include "image/exif.h"
#include "image/formats.h"
#include "image/pixels.h"
#include "lamplighter/error.h"

namespace lamplighter {
namespace {

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
bool has_libwebp() {
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

ClearImage decode_webp(std::string_view bytes, const std::string& path, std::uint64_t most) {
  const auto require = [&](VP8StatusCode status) {
    if (status == VP8_STATUS_OK) return;
    const bool is_short = status == VP8_STATUS_NOT_ENOUGH_DATA || status == VP8_STATUS_SUSPENDED;
    refuse_image(path, std::string("damaged WebP image: ") +
                           (is_short ? "it is cut off" : "its packed data are damaged"));
  };
  WebPDecoderConfig config;
  if (WebPInitDecoderConfig(&config) == 0)
    refuse_image(path, "cannot read WebP files: libwebp is another one than at build time");
  const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());
  require(WebPGetFeatures(data, bytes.size(), &config.input));
  if (config.input.has_animation != 0)
    refuse_image(path, "got an animated WebP image, expected one image; save one of its frames");
  ClearImage image{config.input.width, config.input.height, {}};
  require_pixels(static_cast<std::uint64_t>(image.width), static_cast<std::uint64_t>(image.height), path,
                 most);
  image.pixels.resize(4 * area_of(image.width, image.height));
  config.output.colorspace = MODE_RGBA;
  config.output.is_external_memory = 1;
  config.output.u.RGBA = {image.pixels.data(), 4 * image.width, image.pixels.size()};
  require(WebPDecode(data, bytes.size(), &config));
  const std::optional<std::string_view> exif = exif_of_webp(bytes);
  return turned(std::move(image), exif ? read_orientation(*exif) : 1);
}
#else
bool has_libwebp() {
  return false;
}

std::string encode_webp(const Image& /*image*/, const ImageText& /*text*/, int /*quality*/) {
  throw Error(ExitCode::output, "cannot write WebP files: this build has no libwebp");
}

ClearImage decode_webp(std::string_view /*bytes*/, const std::string& path, std::uint64_t /*most*/) {
  refuse_image(path, "cannot read WebP files: this build has no libwebp");
}
#endif

std::optional<std::string_view> exif_of_webp(std::string_view file) {
  file.remove_prefix(kFileHeader);
  while (file.size() >= kChunkHeader) {
    const std::size_t size = read_little(file.substr(4, 4));
    if (size > file.size() - kChunkHeader) break;
    if (file.substr(0, 4) == "EXIF") return file.substr(kChunkHeader, size);
    file.remove_prefix(std::min(file.size(), kChunkHeader + size + size % 2));
  }
  return std::nullopt;
}

}  // namespace lamplighter

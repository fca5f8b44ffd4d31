#include <cstddef>

#include "image/byte_order.h"
#include "image/exif.h"
#include "image/formats.h"
#include "image/stb_write.h"
#include "lamplighter/error.h"

namespace lamplighter {
namespace {

constexpr std::string_view kStart{"\xFF\xD8", 2}, kExif{"Exif\0\0", 6};
constexpr unsigned char kApp1 = 0xE1, kScan = 0xDA;
constexpr std::size_t kMostSegment = 65533;  // bytes after the length field

}  // namespace

std::string encode_jpeg(const Image& image, const ImageText& text, int quality) {
  std::string bytes = stb::encode_jpeg(image, quality);
  if (text.empty()) return bytes;
  const std::string segment = std::string(kExif) + encode_exif(text);
  if (segment.size() > kMostSegment) {
    throw Error(ExitCode::output, "a JPEG file holds " + std::to_string(kMostSegment) +
                                      " bytes of text, got " + std::to_string(segment.size()) +
                                      "; write PNG, or without metadata");
  }
  return bytes.insert(kStart.size(),
                      "\xFF\xE1" + encode_16(static_cast<std::uint16_t>(segment.size() + 2)) + segment);
}

std::optional<std::string_view> exif_of_jpeg(std::string_view file) {
  file.remove_prefix(kStart.size());
  while (file.size() >= 4 && file[0] == '\xFF') {
    const auto kind = static_cast<unsigned char>(file[1]);
    const std::size_t length = read_16(file.substr(2));
    if (kind == kScan || length < 2 || length + 2 > file.size()) break;
    const std::string_view content = file.substr(4, length - 2);
    if (kind == kApp1 && content.substr(0, kExif.size()) == kExif) return content.substr(kExif.size());
    file.remove_prefix(length + 2);
  }
  return std::nullopt;
}

}  // namespace lamplighter

#include <zlib.h>

#include "base/files.h"
#include "image/byte_order.h"
#include "image/png_chunks.h"
#include "image/stb_write.h"
#include "lamplighter/image.h"

namespace lamplighter {
namespace {

constexpr std::size_t kHeaderEnd = 8 + 25;  // end of signature and IHDR chunk; text chunks may follow

}  // namespace

std::string encode_png_chunk(std::string_view type, std::string_view data) {
  std::string body(type);
  body.append(data);
  const uLong crc = crc32_z(0, reinterpret_cast<const Bytef*>(body.data()), body.size());
  return encode_32(static_cast<std::uint32_t>(data.size())) + body +
         encode_32(static_cast<std::uint32_t>(crc));
}

std::string png_data(std::string_view bytes) {
  std::string data;
  std::size_t at = kPngSignature.size();
  while (at < bytes.size()) {
    const std::size_t size = read_32(bytes.substr(at));
    if (bytes.substr(at + 4, 4) == "IDAT") data += bytes.substr(at + 8, size);
    at += 12 + size;  // length, type and CRC take 4 bytes each
  }
  return data;
}

std::string encode_png_text(std::string_view keyword, std::string_view text) {
  // After the keyword: not compressed, method 0, no language, no translated keyword.
  std::string data(keyword);
  data.append(5, '\0');
  data.append(text);
  return encode_png_chunk("iTXt", data);
}

std::string encode_png(const Image& image, const ImageText& text) {
  std::string bytes = stb::encode_png(image);
  std::string chunks;
  for (const auto& [keyword, value] : text) chunks += encode_png_text(keyword, value);
  return bytes.insert(kHeaderEnd, chunks);
}

void write_png(const std::string& path, const Image& image, const ImageText& text, bool overwrite) {
  write_file(path, encode_png(image, text), overwrite);
}

}  // namespace lamplighter

#include <zlib.h>

#include "base/inflate.h"
#include "image/byte_order.h"
#include "image/pixels.h"
#include "image/png_chunks.h"
#include "lamplighter/image.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_ONLY_PNG
#define STBI_NO_SIMD  // SIMD code serves other formats only
#define STBI_NO_STDIO
#define STBI_MAX_DIMENSIONS lamplighter::limits::kImageSide
#include <stb_image.h>
#pragma GCC diagnostic pop

#include <iterator>
#include <memory>
#include <optional>
#include <vector>

namespace lamplighter {

namespace {

// At least as many bytes as the rows of an image have (PNG specification, sections 7 and 8), from the head
// that its first chunk holds.
std::uint64_t most_data(std::string_view head) {
  constexpr std::uint64_t samples[] = {1, 1, 3, 1, 2, 1, 4};  // of a pixel, by the type of colour
  const std::uint64_t width = read_32(head), height = read_32(head.substr(4));
  const auto depth = static_cast<unsigned char>(head[8]), colour = static_cast<unsigned char>(head[9]);
  const std::uint64_t bits = depth * (colour < std::size(samples) ? samples[colour] : 4);
  return (width * height * bits + 7) / 8 + 4 * height + 16;  // interlaced, there are twice as many rows
}

// stb_image trusts the declared chunk length and image size, allocates memory for them, and unpacks all data,
// however many they are.
void require_content(std::string_view bytes, const std::string& path, std::uint64_t most) {
  constexpr std::size_t kFrame = 12;      // length, type and CRC-32
  constexpr std::uint64_t kRatio = 1032;  // deflate expands at most this much
  const auto damaged = [&](const char* why) { refuse_image(path, std::string("damaged PNG image: ") + why); };
  bytes.remove_prefix(kPngSignature.size());
  if (bytes.size() < 13 + kFrame) damaged("it is cut off");
  if (read_32(bytes) != 13 || bytes.substr(4, 4) != "IHDR") damaged("it does not begin with its head");
  const std::string_view head = bytes.substr(8, 13);
  const std::uint64_t width = read_32(head), height = read_32(head.substr(4));
  if (width * height / 8 > kRatio * bytes.size()) damaged("it is too small for its pixels");  // a bit each
  require_pixels(width, height, path, most);
  std::vector<std::string_view> data;
  for (bool is_complete = false; !is_complete;) {
    if (bytes.size() < kFrame) damaged("it is cut off");
    const std::size_t length = read_32(bytes);
    if (length > bytes.size() - kFrame) damaged("a chunk is cut off");
    const std::string_view body = bytes.substr(4, 4 + length);
    if (crc32_z(0, reinterpret_cast<const Bytef*>(body.data()), body.size()) !=
        read_32(bytes.substr(8 + length)))
      damaged("the checksum of a chunk is wrong");
    if (body.substr(0, 4) == "IDAT") data.push_back(body.substr(4));
    is_complete = body.substr(0, 4) == "IEND";  // data after it does not belong to the image
    bytes.remove_prefix(kFrame + length);
  }
  const std::optional<std::uint64_t> size = inflated_size(data, most_data(head));
  if (!size) damaged("its packed data are damaged");
  if (*size > most_data(head)) damaged("it has more data than its pixels need");
}

// For colours that a palette lacks stb_image reads memory that nobody has written: this file has 256, black
// ones behind its own. Returns nothing for files that need none.
std::optional<std::string> with_whole_palette(std::string_view bytes) {
  constexpr std::size_t kColour = 25, kWhole = 768;  // place of the type of colour, bytes of a palette
  std::size_t at = kPngSignature.size();
  if (bytes[kColour] != 3) return std::nullopt;
  for (std::string_view type; type != "IDAT" && type != "IEND"; at += 12 + read_32(bytes.substr(at))) {
    type = bytes.substr(at + 4, 4);
    const std::string_view colours = bytes.substr(at + 8, read_32(bytes.substr(at)));
    if (type != "PLTE" || colours.empty() || colours.size() % 3 != 0 || colours.size() >= kWhole) continue;
    std::string palette(colours);
    palette.resize(kWhole);
    return std::string(bytes.substr(0, at)) + encode_png_chunk("PLTE", palette) +
           std::string(bytes.substr(at + 12 + colours.size()));
  }
  return std::nullopt;
}

}  // namespace

ClearImage decode_png(std::string_view bytes, const std::string& path, std::uint64_t most) {
  require_content(bytes, path, most);
  const std::optional<std::string> whole = with_whole_palette(bytes);
  if (whole) bytes = *whole;
  ClearImage image;
  int channels = 0;
  const std::unique_ptr<stbi_uc, void (*)(void*)> pixels(
      stbi_load_from_memory(reinterpret_cast<const stbi_uc*>(bytes.data()), static_cast<int>(bytes.size()),
                            &image.width, &image.height, &channels, STBI_rgb_alpha),
      stbi_image_free);
  if (pixels == nullptr) refuse_image(path, std::string("damaged PNG image: ") + stbi_failure_reason());
  image.pixels.assign(pixels.get(), pixels.get() + 4 * area_of(image.width, image.height));
  return image;
}

}  // namespace lamplighter

#include <zlib.h>

#include "image/byte_order.h"
#include "image/pixels.h"
#include "image/png_chunks.h"
#include "lamplighter/image.h"
#include "tests/fuzz/fuzz.h"

namespace {

// The file with right checksums, so that a change of one reaches what reads the chunks.
std::string with_checksums(std::string bytes) {
  using namespace lamplighter;
  for (std::size_t at = kPngSignature.size(); at + 12 <= bytes.size();) {
    const std::size_t length = read_32(std::string_view(bytes).substr(at));
    if (length > bytes.size() - at - 12) break;
    const auto* body = reinterpret_cast<const Bytef*>(bytes.data() + at + 4);
    bytes.replace(at + 8 + length, 4, encode_32(static_cast<std::uint32_t>(crc32_z(0, body, length + 4))));
    at += 12 + length;
  }
  return bytes;
}

}  // namespace

// Text and pixels of untrusted image files: PNG, JPEG and WebP.
extern "C" int LLVMFuzzerTestOneInput(const unsigned char* bytes, std::size_t size) {
  using namespace lamplighter;
  const std::string_view text = fuzz::text(bytes, size);
  const std::string path = fuzz::file_of(text);
  fuzz::meet([&] { read_image_text(path); });
  fuzz::meet([&] { read_image(path); });
  if (text.substr(0, kPngSignature.size()) != kPngSignature) return 0;
  return fuzz::meet([&] { parse_image(with_checksums(std::string(text)), path); });
}

#include <array>

#include "image/formats.h"
#include "image/png_chunks.h"

namespace lamplighter {
namespace {

struct Kind {
  const char* name;
  std::size_t at;  // where its letters are
  std::string_view letters;
};

using namespace std::string_view_literals;
constexpr std::array kKinds{
    Kind{"PNG", 0, kPngSignature},    Kind{"JPEG", 0, "\xFF\xD8\xFF"sv},
    Kind{"WebP", 8, "WEBP"sv},        Kind{"GIF", 0, "GIF8"sv},
    Kind{"BMP", 0, "BM"sv},           Kind{"TIFF", 0, "II*\0"sv},
    Kind{"TIFF", 0, "MM\0*"sv},       Kind{"AVIF", 4, "ftypavif"sv},
    Kind{"HEIC", 4, "ftyphei"sv},     Kind{"HEIC", 4, "ftypmif1"sv},
    Kind{"JPEG XL", 0, "\xFF\x0A"sv}, Kind{"JPEG XL", 4, "JXL "sv},
    Kind{"JPEG 2000", 4, "jP  "sv},   Kind{"OpenEXR", 0, "v/1\1"sv},
    Kind{"Photoshop", 0, "8BPS"sv},   Kind{"PPM", 0, "P6\n"sv},
    Kind{"PDF", 0, "%PDF-"sv},        Kind{"SVG", 0, "<svg"sv},
};

}  // namespace

std::string image_kind(std::string_view bytes) {
  for (const Kind& kind : kKinds) {
    if (bytes.size() >= kind.at && bytes.substr(kind.at, kind.letters.size()) == kind.letters)
      return kind.name;
  }
  return "";
}

}  // namespace lamplighter

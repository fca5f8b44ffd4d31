#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <filesystem>

#include "base/files.h"
#include "base/utf8.h"
#include "image/exif.h"
#include "image/formats.h"
#include "image/png_chunks.h"
#include "lamplighter/error.h"
#include "lamplighter/image.h"

namespace lamplighter {
namespace {

enum class Kind { png, jpeg, webp };

Kind kind_of(const std::string& path) {
  const std::string ending = ending_of(path);
  if (ending == ".jpg" || ending == ".jpeg") return Kind::jpeg;
  return ending == ".webp" ? Kind::webp : Kind::png;
}

template <std::size_t N>
bool is_among(const std::array<const char*, N>& endings, const std::string& ending) {
  return std::find(endings.begin(), endings.end(), ending) != endings.end();
}

constexpr std::array kWritten{".png", ".jpg", ".jpeg", ".webp"};
constexpr std::array kOthers{".gif", ".bmp", ".tif", ".tiff", ".avif", ".ppm"};

}  // namespace

std::string ending_of(const std::string& path) {
  std::string ending = std::filesystem::path(path).extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return ending;
}

bool is_image_name(const std::string& path) {
  const std::string ending = ending_of(path);
  return is_among(kWritten, ending) || is_among(kOthers, ending);
}

std::string refuse_image_name(const std::string& path) {
  const std::string ending = ending_of(path);
  if (ending == ".webp" && !has_libwebp())
    return "a name that ends in .png or .jpg: this build has no libwebp";
  if (!is_among(kOthers, ending)) return "";
  return has_libwebp() ? "a name that ends in .png, .jpg or .webp" : "a name that ends in .png or .jpg";
}

void write_image(const std::string& path, const Image& image, const ImageText& text, bool overwrite) {
  const Kind kind = kind_of(path);
  const std::string bytes = kind == Kind::jpeg   ? encode_jpeg(image, text)
                            : kind == Kind::webp ? encode_webp(image, text)
                                                 : encode_png(image, text);
  write_file(path, bytes, overwrite);
}

ImageText read_image_text(const std::string& path) {
  const std::string file = read_input(path);
  const std::string_view bytes = file;
  if (bytes.substr(0, kPngSignature.size()) == kPngSignature) return parse_png_text(bytes, path);
  std::optional<std::string_view> exif;
  if (bytes.substr(0, 3) == "\xFF\xD8\xFF") {
    exif = exif_of_jpeg(bytes);
  } else if (bytes.size() >= 12 && bytes.substr(0, 4) == "RIFF" && bytes.substr(8, 4) == "WEBP") {
    exif = exif_of_webp(bytes);
  } else {
    throw Error(ExitCode::input, path + ": not an image, expected a PNG, JPEG or WebP file");
  }
  const std::string text = exif ? read_exif(*exif) : "";
  if (text.empty()) return {};
  if (find_invalid_utf8(text) != std::string::npos)
    throw Error(ExitCode::input, path + ": damaged image: its text is not valid UTF-8");
  return {{"lamplighter", text}};
}

}  // namespace lamplighter

#include "base/files.h"
#include "lamplighter/error.h"
#include "lamplighter/image.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_ONLY_PNG
#define STBI_NO_SIMD  // only other formats use it
#define STBI_NO_STDIO
#define STBI_MAX_DIMENSIONS lamplighter::limits::kPngSide
#include <stb_image.h>
#pragma GCC diagnostic pop

#include <memory>

namespace lamplighter {

Image read_png(const std::string& path) {
  const std::string bytes = read_input(path);
  Image image;
  int channels = 0;
  const std::unique_ptr<stbi_uc, void (*)(void*)> pixels(
      stbi_load_from_memory(reinterpret_cast<const stbi_uc*>(bytes.data()), static_cast<int>(bytes.size()),
                            &image.width, &image.height, &channels, STBI_rgb),
      stbi_image_free);
  if (pixels == nullptr) throw Error(ExitCode::input, path + ": not a PNG picture: " + stbi_failure_reason());
  const auto area = static_cast<std::size_t>(image.width) * static_cast<std::size_t>(image.height);
  image.pixels.assign(pixels.get(), pixels.get() + 3 * area);
  return image;
}

}  // namespace lamplighter

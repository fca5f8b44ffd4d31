#include "tools/fit_flags.h"

#include <algorithm>

#include "base/message.h"
#include "lamplighter/error.h"
#include "pipeline/pixel_encoder.h"
#include "tools/help.h"

namespace lamplighter::cli {
namespace {

Fit parse_fit(const std::string& text) {
  if (text.empty() || text == "crop") return Fit::crop;
  if (text == "pad") return Fit::pad;
  if (text == "stretch") return Fit::stretch;
  throw Error(ExitCode::usage, "--fit: got " + quote(text) + ", expected crop, pad or stretch");
}

struct Size {
  int width = 0, height = 0;
};

// 0: the flag is not given.
int side_of(const char* flag, const std::optional<int>& given) {
  if (given && *given < 1)
    throw Error(ExitCode::usage,
                std::string(flag) + ": got " + std::to_string(*given) + ", expected 1 or more");
  return given.value_or(0);
}

Size size_of(const FitFlags& flags, const Manifest& manifest, const Image& image) {
  const Size wanted{side_of("--width", flags.width), side_of("--height", flags.height)};
  if (manifest.grids.empty()) {
    const auto side = static_cast<int>(manifest.decoder.downsample);
    const auto whole = [side](int pixels) { return std::max(pixels / side, 1) * side; };
    return {wanted.width > 0 ? wanted.width : whole(image.width),
            wanted.height > 0 ? wanted.height : whole(image.height)};
  }
  const auto fits = [&](const Grid& grid) {
    return grid.width == image.width && grid.height == image.height;
  };
  if (wanted.width == 0 && wanted.height == 0 &&
      std::any_of(manifest.grids.begin(), manifest.grids.end(), fits))
    return {image.width, image.height};
  const Grid& grid = find_grid(manifest, wanted.width, wanted.height);
  return {grid.width, grid.height};
}

}  // namespace

CLI::Option* FitFlags::add_fit(CLI::App& command) {
  CLI::Option* flag = command.add_option("--fit", how,
                                         "How an image of another size becomes one of the bundle's: crop "
                                         "(scaled to cover it, the middle stays), "
                                         "pad (scaled to fit inside, with white beside it), stretch");
  return with_choices(command, flag->type_name("HOW")->default_str("crop"), {"crop", "pad", "stretch"});
}

Image fitted_image(const FitFlags& flags, const Manifest& manifest, const Image& image,
                   const std::string& where) {
  const Fit fit = parse_fit(flags.how);
  require_encoder(manifest);
  const Size size = size_of(flags, manifest, image);
  check_sides(manifest, size.width, size.height, where);
  return fit_image(image, size.width, size.height, fit);
}

}  // namespace lamplighter::cli

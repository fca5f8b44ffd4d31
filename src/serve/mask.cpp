#include "serve/mask.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>

#include "base/format.h"
#include "image/fit.h"
#include "lamplighter/error.h"

namespace lamplighter {
namespace {

constexpr int kHalf = 128;

[[noreturn]] void refuse(const std::string& why) {
  throw Error(ExitCode::input, "mask: " + why);
}

// The first row with a marked pixel, and the one behind the last row with another one.
struct Border {
  int marked = 0, unmarked = 0;
};

using IsMarked = std::function<bool(const std::uint8_t* rgba)>;

IsMarked marks_of(const ClearImage& mask, MaskForm form) {
  if (form == MaskForm::clear) return [](const std::uint8_t* rgba) { return rgba[3] < kHalf; };
  bool is_clear = false;
  for (std::size_t i = 3; i < mask.pixels.size(); i += 4) is_clear = is_clear || mask.pixels[i] < 255;
  const bool marks_bright = form == MaskForm::white;
  return [is_clear, marks_bright](const std::uint8_t* rgba) {
    const int value = is_clear ? rgba[3] : (299 * rgba[0] + 587 * rgba[1] + 114 * rgba[2] + 500) / 1000;
    return (value >= kHalf) == marks_bright;
  };
}

Border find_border(const ClearImage& mask, const IsMarked& is_marked) {
  Border border{mask.height, 0};
  const std::uint8_t* pixel = mask.pixels.data();
  for (int y = 0; y < mask.height; ++y) {
    for (int x = 0; x < mask.width; ++x, pixel += 4) {
      if (!is_marked(pixel)) {
        border.unmarked = y + 1;
      } else if (border.marked == mask.height) {
        border.marked = y;
      }
    }
  }
  return border;
}

}  // namespace

int rows_kept_by(const ClearImage& mask, MaskForm form, const FittedSides& sides) {
  if (mask.width != sides.width || mask.height != sides.height) {
    refuse("got " + lamplighter::sides(mask.width, mask.height) + " pixels, expected " +
           lamplighter::sides(sides.width, sides.height) + ", as the image has");
  }
  const Border border = find_border(mask, marks_of(mask, form));
  const std::string marked = form == MaskForm::clear   ? "transparent"
                             : form == MaskForm::white ? "white"
                                                       : "black";
  const auto edge = [&](int y) {
    return fitted_edge(sides.width, sides.height, sides.fitted_width, sides.fitted_height, sides.fit, y);
  };
  const double first = edge(border.marked);
  if (border.marked == mask.height || first >= sides.fitted_height)
    refuse("marks nothing to generate anew, expected " + marked + " pixels below a line");
  if (edge(border.unmarked) - first > sides.token) {
    refuse("got pixels to keep below or beside others, expected all below a line to be " + marked +
           " and none above it: images are generated from the top to the bottom, so that only a lower part "
           "can be generated anew");
  }
  const int rows = static_cast<int>(std::floor(first / sides.token));
  if (rows < 1) {
    refuse("keeps no whole row of tokens, which has " + std::to_string(sides.token) + " of " +
           std::to_string(sides.fitted_height) + " pixels, expected the " + marked +
           " pixels to begin below it; an image without kept rows is one of the caption alone");
  }
  return rows;
}

}  // namespace lamplighter

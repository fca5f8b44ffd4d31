#include "serve/mask.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/format.h"
#include "image/fit.h"
#include "lamplighter/error.h"
#include "pipeline/region.h"

namespace lamplighter {
namespace {

constexpr int kHalf = 128;

[[noreturn]] void refuse(const std::string& why) {
  throw Error(ExitCode::input, "mask: " + why);
}

const char* colour_of(MaskForm form) {
  return form == MaskForm::clear ? "transparent" : form == MaskForm::white ? "white" : "black";
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

// The tokens of a side, from `first` on, that a pixel touches once the image is fitted.
struct Touched {
  int first = 0, end = 0;
};

// Of all pixels of a side; `edge` is where a pixel begins.
std::vector<Touched> touched_along(int pixels, int fitted, int token,
                                   const std::function<double(int)>& edge) {
  std::vector<Touched> all;
  for (int i = 0; i < pixels; ++i) {
    const double from = i == 0 ? std::min(edge(0), 0.0) : edge(i);
    const double to = i + 1 == pixels ? std::max<double>(edge(pixels), fitted) : edge(i + 1);
    const double most = fitted / token;
    const double first = std::clamp(std::floor(from / token), 0.0, most);
    all.push_back(
        {static_cast<int>(first), static_cast<int>(std::clamp(std::ceil(to / token), first, most))});
  }
  return all;
}

// Tokens that marked pixels touch: their number, and the rectangle around them.
struct Marked {
  int columns = 0, rows = 0;  // of all tokens
  int left = 0, top = 0, right = 0, bottom = 0;
  int count = 0;

  bool is_rectangle() const { return count == (right - left) * (bottom - top); }
  bool is_lower() const { return is_rectangle() && left == 0 && right == columns && bottom == rows; }
  bool is_all() const { return right - left == columns && bottom - top == rows; }
  Region region(int token) const {
    return {left * token, top * token, (right - left) * token, (bottom - top) * token};
  }
};

Marked find_marked(const ClearImage& mask, const IsMarked& is_marked, const FittedSides& s) {
  Marked marked{s.fitted_width / s.token, s.fitted_height / s.token};
  const std::vector<Touched> across = touched_along(s.width, s.fitted_width, s.token, [&](int x) {
    return fitted_edge(s.height, s.width, s.fitted_height, s.fitted_width, s.fit, x);
  });
  const std::vector<Touched> down = touched_along(s.height, s.fitted_height, s.token, [&](int y) {
    return fitted_edge(s.width, s.height, s.fitted_width, s.fitted_height, s.fit, y);
  });
  std::vector<char> is_touched(static_cast<std::size_t>(marked.columns) *
                               static_cast<std::size_t>(marked.rows));
  const std::uint8_t* pixel = mask.pixels.data();
  for (const Touched& rows : down) {
    for (const Touched& columns : across) {
      if (is_marked(pixel)) {
        for (int row = rows.first; row < rows.end; ++row) {
          const auto line = is_touched.begin() + std::ptrdiff_t{row} * marked.columns;
          std::fill(line + columns.first, line + columns.end, char{1});
        }
      }
      pixel += 4;
    }
  }
  marked.left = marked.columns, marked.top = marked.rows;
  for (int cell = 0; cell < marked.columns * marked.rows; ++cell) {
    if (is_touched[static_cast<std::size_t>(cell)] == 0) continue;
    const int column = cell % marked.columns, row = cell / marked.columns;
    ++marked.count;
    marked.left = std::min(marked.left, column), marked.right = std::max(marked.right, column + 1);
    marked.top = std::min(marked.top, row), marked.bottom = row + 1;
  }
  return marked;
}

// Whether all lies below a line that is ragged within one row of tokens.
bool is_below_line(const ClearImage& mask, const IsMarked& is_marked, const FittedSides& s) {
  const Border border = find_border(mask, is_marked);
  const auto edge = [&](int y) {
    return fitted_edge(s.width, s.height, s.fitted_width, s.fitted_height, s.fit, y);
  };
  return edge(border.unmarked) - edge(border.marked) <= s.token;
}

}  // namespace

KeptPart kept_by(const ClearImage& mask, MaskForm form, const FittedSides& sides) {
  if (mask.width != sides.width || mask.height != sides.height) {
    refuse("got " + lamplighter::sides(mask.width, mask.height) + " pixels, expected " +
           lamplighter::sides(sides.width, sides.height) + ", as the image has");
  }
  const IsMarked is_marked = marks_of(mask, form);
  const Marked marked = find_marked(mask, is_marked, sides);
  const std::string colour = colour_of(form);
  if (marked.count == 0) {
    refuse("marks nothing to generate anew, expected " + colour + " pixels below a line, or in a rectangle");
  }
  KeptPart part;
  part.region_name = "region";
  if (marked.is_rectangle() && !marked.is_lower()) {
    part.region = marked.region(sides.token);
    return part;
  }
  if (!marked.is_lower() && !is_below_line(mask, is_marked, sides)) {
    const std::string offered = marked.is_all()
                                    ? "of some of its tokens"
                                    : "as region " + region_text(marked.region(sides.token)) + " around them";
    refuse("got " + colour + " pixels that touch tokens of another shape, expected a lower part of the " +
           "image, or a rectangle " + offered + "; a token has " +
           lamplighter::sides(sides.token, sides.token) + " pixels");
  }
  if (marked.top < 1) {
    refuse("keeps no whole row of tokens, which has " + std::to_string(sides.token) + " of " +
           std::to_string(sides.fitted_height) + " pixels, expected the " + colour +
           " pixels to begin below it; an image without kept rows is one of the caption alone");
  }
  part.rows = marked.top;
  return part;
}

bool has_clear(const ClearImage& image) {
  const IsMarked is_clear = marks_of(image, MaskForm::clear);
  for (std::size_t i = 0; i < image.pixels.size(); i += 4) {
    if (is_clear(image.pixels.data() + i)) return true;
  }
  return false;
}

void refuse_no_mask(MaskForm form) {
  refuse(
      std::string("got none, expected an image that is ") + colour_of(form) +
      " below a line or in a rectangle, or keep_rows, or region: what is generated anew; the whole of an " +
      "image cannot be changed a little");
}

}  // namespace lamplighter

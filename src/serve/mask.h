#pragma once

#include "image/pixels.h"
#include "lamplighter/image.h"
#include "serve/edit.h"

namespace lamplighter {

// The sides of an image that is fitted to a grid of tokens.
struct FittedSides {
  int width = 0, height = 0;  // of the image
  int fitted_width = 0, fitted_height = 0;
  int token = 0;  // pixels on a side of a token
  Fit fit = Fit::crop;
};

// What a mask keeps: all but the tokens that the pixels touch that it marks. They are a rectangle, which is
// the region, or the lower part of the image, and then the rows above it are kept. In the lower part, pixels
// that are not marked may lie beside or below marked ones by at most a row of tokens. What was padded belongs
// to the pixels at the edge. Throws Error(ExitCode::input) for other masks, also where all or nothing is
// kept.
KeptPart kept_by(const ClearImage& mask, MaskForm form, const FittedSides& sides);

// Whether pixels count as clear.
bool has_clear(const ClearImage& image);

// Says how a request can mark what is generated anew. Throws Error.
[[noreturn]] void refuse_no_mask(MaskForm form);

}  // namespace lamplighter

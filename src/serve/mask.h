#pragma once

#include "image/png_chunks.h"
#include "lamplighter/image.h"
#include "serve/edit.h"

namespace lamplighter {

// The sides of an image that is fitted to a grid of tokens.
struct FittedSides {
  int width = 0, height = 0;  // of the image
  int fitted_width = 0, fitted_height = 0;
  int token = 0;  // rows of pixels that a row of tokens has
  Fit fit = Fit::crop;
};

// How many rows of tokens a mask keeps: the rows that lie whole above all pixels that it marks. Pixels that
// are not marked may lie beside or below marked ones by at most a row of tokens. Throws
// Error(ExitCode::input) for other masks, also where all or nothing is kept.
int rows_kept_by(const ClearImage& mask, MaskForm form, const FittedSides& sides);

}  // namespace lamplighter

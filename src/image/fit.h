#pragma once

#include "lamplighter/image.h"

namespace lamplighter {

// Where the upper edge of row `y` of an image with these sides lies in the one that fit_image makes of it, in
// rows from its top; outside it where it was cut off.
double fitted_edge(int width, int height, int fitted_width, int fitted_height, Fit fit, int y);

}  // namespace lamplighter

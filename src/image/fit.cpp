#include "image/fit.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/format.h"
#include "base/limits.h"
#include "image/canvas.h"
#include "lamplighter/error.h"
#include "lamplighter/image.h"

namespace lamplighter {
namespace {

constexpr std::size_t kChannels = 3;
constexpr int kBits = 22;  // of the fractions of weights: a sum of products with bytes fits into 32 bits

double sinc(double x) {
  constexpr double pi = 3.14159265358979323846;
  return x == 0.0 ? 1.0 : std::sin(pi * x) / (pi * x);
}

double lanczos(double x) {
  return std::abs(x) < 3.0 ? sinc(x) * sinc(x / 3.0) : 0.0;
}

// One side of an image that is scaled from `size` to `scaled` pixels, of which `count` from `first` on are
// wanted.
struct Side {
  std::int64_t size = 0, scaled = 0, first = 0;
  int count = 0;
};

// The weighted sum that makes a pixel: of the pixels from `first` on.
struct Sum {
  std::int64_t first = 0;
  std::vector<std::int32_t> weights;
};

Sum sum_of(const Side& side, std::int64_t place) {
  const double scale = static_cast<double>(side.size) / static_cast<double>(side.scaled);
  const double wide = std::max(scale, 1.0), support = 3.0 * wide;
  const double centre = (static_cast<double>(place) + 0.5) * scale;
  Sum sum;
  sum.first = std::max<std::int64_t>(static_cast<std::int64_t>(std::floor(centre - support + 0.5)), 0);
  const auto end = std::min(static_cast<std::int64_t>(std::floor(centre + support + 0.5)), side.size);
  std::vector<double> shares;
  double all = 0;
  for (std::int64_t x = sum.first; x < end; ++x) {
    shares.push_back(lanczos((static_cast<double>(x) - centre + 0.5) / wide));
    all += shares.back();
  }
  for (const double share : shares)
    sum.weights.push_back(static_cast<std::int32_t>(std::lround(share / all * (1 << kBits))));
  return sum;
}

std::vector<Sum> sums_of(const Side& side) {
  std::vector<Sum> sums;
  for (int i = 0; i < side.count; ++i) {
    if (side.size == side.scaled) {
      sums.push_back({side.first + i, {1 << kBits}});
    } else {
      sums.push_back(sum_of(side, side.first + i));
    }
  }
  return sums;
}

// Pixels lie `step` bytes apart.
std::uint8_t apply(const Sum& sum, const std::uint8_t* from, std::size_t step) {
  std::int32_t value = 1 << (kBits - 1);
  from += static_cast<std::size_t>(sum.first) * step;
  for (const std::int32_t weight : sum.weights) {
    value += weight * *from;
    from += step;
  }
  return static_cast<std::uint8_t>(std::clamp(value >> kBits, 0, 255));
}

// Scales rows first, then columns, each to bytes.
Image scale(const Image& image, const Side& across, const Side& down) {
  const std::vector<Sum> columns = sums_of(across), rows = sums_of(down);
  const auto width = static_cast<std::size_t>(across.count);
  const std::int64_t first = rows.front().first;
  const std::int64_t end = rows.back().first + static_cast<std::int64_t>(rows.back().weights.size());
  std::vector<std::uint8_t> narrow;
  narrow.reserve(static_cast<std::size_t>(end - first) * width * kChannels);
  for (std::int64_t y = first; y < end; ++y) {
    const std::uint8_t* row =
        image.pixels.data() + static_cast<std::size_t>(y) * static_cast<std::size_t>(image.width) * kChannels;
    for (const Sum& sum : columns) {
      for (std::size_t channel = 0; channel < kChannels; ++channel)
        narrow.push_back(apply(sum, row + channel, kChannels));
    }
  }
  Image scaled{across.count, down.count, {}};
  scaled.pixels.reserve(width * static_cast<std::size_t>(down.count) * kChannels);
  for (Sum& sum : std::vector<Sum>(rows)) {
    sum.first -= first;
    for (std::size_t byte = 0; byte < width * kChannels; ++byte)
      scaled.pixels.push_back(apply(sum, narrow.data() + byte, width * kChannels));
  }
  return scaled;
}

std::int64_t scaled_side(int side, double factor) {
  return std::max<std::int64_t>(std::llround(side * factor), 1);
}

// How much an image with these sides is scaled, for crop and pad.
double factor_of(int width, int height, int fitted_width, int fitted_height, Fit fit) {
  const double by_width = static_cast<double>(fitted_width) / width;
  const double by_height = static_cast<double>(fitted_height) / height;
  return fit == Fit::crop ? std::max(by_width, by_height) : std::min(by_width, by_height);
}

}  // namespace

double fitted_edge(int width, int height, int fitted_width, int fitted_height, Fit fit, int y) {
  if (fit == Fit::stretch) return static_cast<double>(y) * fitted_height / height;
  const std::int64_t scaled = scaled_side(height, factor_of(width, height, fitted_width, fitted_height, fit));
  const std::int64_t cut = fit == Fit::crop ? (scaled - fitted_height) / 2 : -((fitted_height - scaled) / 2);
  return static_cast<double>(y) * static_cast<double>(scaled) / height - static_cast<double>(cut);
}

Image fit_image(const Image& image, int width, int height, Fit fit) {
  if (std::min(width, height) < 1 || std::max(width, height) > limits::kImageSide) {
    throw Error(ExitCode::usage, "size: got " + sides(width, height) + ", expected sides of 1.." +
                                     std::to_string(limits::kImageSide) + " pixels");
  }
  const auto area = static_cast<std::size_t>(std::max(image.width, 0)) *
                    static_cast<std::size_t>(std::max(image.height, 0));
  if (area == 0 || image.pixels.size() != area * kChannels) {
    throw Error(ExitCode::usage, "image: got " + sides(image.width, image.height) + " pixels in " +
                                     counted(image.pixels.size(), "byte") + ", expected 3 bytes for each");
  }
  if (image.width == width && image.height == height) return image;
  Side across{image.width, width, 0, width}, down{image.height, height, 0, height};
  if (fit == Fit::stretch) return scale(image, across, down);
  const double factor = factor_of(image.width, image.height, width, height, fit);
  across.scaled = scaled_side(image.width, factor);
  down.scaled = scaled_side(image.height, factor);
  if (fit == Fit::crop) {
    across.first = (across.scaled - width) / 2;
    down.first = (down.scaled - height) / 2;
    return scale(image, across, down);
  }
  across.count = static_cast<int>(across.scaled);
  down.count = static_cast<int>(down.scaled);
  Image canvas = make_canvas(width, height, {255, 255, 255});
  paste(scale(image, across, down), canvas, (width - across.count) / 2, (height - down.count) / 2);
  return canvas;
}

}  // namespace lamplighter

#pragma once

#include <optional>
#include <string>

#include "bundle/modules/target.h"
#include "lamplighter/image.h"
#include "lamplighter/pipeline.h"

namespace lamplighter {

// Throws Error(ExitCode::bundle) unless the bundle has an image encoder.
void require_encoder(const Manifest& manifest);

// Throws like it, and Error(ExitCode::input) beginning with `where` unless images with these sides give the
// codes of one of its grids. Needs no weights.
void check_sides(const Manifest& manifest, int width, int height, const std::string& where);

// crop, pad or stretch. Throws Error(ExitCode::usage).
Fit parse_fit(const std::string& text);

// The size that an image is to get; a side that is not set is open.
struct WantedSize {
  std::optional<int> width, height;
  Fit fit = Fit::crop;
};

// The image with sides that the bundle's image encoder takes: the wanted ones, its own where the bundle has
// them, else the sides of the bundle's first grid. For a bundle without grids its own are rounded down to
// whole tokens. Throws like check_sides, and Error(ExitCode::usage) for sides that no grid has.
Image fit_to_bundle(const Manifest& manifest, const Image& image, const WantedSize& wanted,
                    const std::string& where);

// Encodes images as codebook indices with the bundle's image encoder, every image alone (one_thread.h).
class PixelEncoder {
 public:
  // The manifest outlives it. Throws Error(ExitCode::bundle).
  PixelEncoder(const Manifest& manifest, const c10::Device& device);

  Codes encode(const Image& image) const;

 private:
  const Manifest& manifest_;
  c10::Device device_;
  ImageEncoder encoder_;
};

}  // namespace lamplighter

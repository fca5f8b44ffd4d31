#pragma once

#include "bundle/modules/target.h"
#include "lamplighter/image.h"
#include "lamplighter/pipeline.h"

namespace lamplighter {

// Throws Error(ExitCode::bundle) unless the bundle has an image encoder.
void require_encoder(const Manifest& manifest);

// Throws like it, and Error(ExitCode::input) beginning with `where` unless images with these sides give the
// codes of one of its grids. Needs no weights.
void check_sides(const Manifest& manifest, int width, int height, const std::string& where);

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

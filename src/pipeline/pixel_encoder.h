#pragma once

#include "bundle/modules/target.h"
#include "lamplighter/image.h"
#include "lamplighter/pipeline.h"

namespace lamplighter {

// Throws Error(ExitCode::bundle) unless the bundle has an image encoder.
void require_encoder(const Manifest& manifest);

// Throws like it, and Error(ExitCode::input) beginning with `where` unless pictures with these sides give the
// codes of one of its grids. Needs no weights.
void check_picture(const Manifest& manifest, int width, int height, const std::string& where);

// Encodes pictures as codebook indices with the bundle's image encoder, every picture alone (one_thread.h).
class PixelEncoder {
 public:
  // The manifest outlives it. Throws Error(ExitCode::bundle).
  PixelEncoder(const Manifest& manifest, const c10::Device& device);

  Codes encode(const Image& picture) const;

 private:
  const Manifest& manifest_;
  c10::Device device_;
  ImageEncoder encoder_;
};

}  // namespace lamplighter

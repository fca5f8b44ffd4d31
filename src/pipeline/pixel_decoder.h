#pragma once

#include <ATen/core/Tensor.h>

#include <mutex>

#include "bundle/modules/target.h"
#include "lamplighter/image.h"
#include "lamplighter/pipeline.h"

namespace lamplighter {

// Decodes tokens to pixels with the bundle's image decoder, every image alone (one_thread.h). Calls may
// come from several threads: a preview may be wanted while another image is decoded.
class PixelDecoder {
 public:
  // The manifest outlives it. Throws Error(ExitCode::bundle).
  PixelDecoder(const Manifest& manifest, const c10::Device& device);

  Image decode(const Codes& codes) const;
  // What the image decoder takes of one image.
  Image decode(const at::Tensor& tokens) const;

 private:
  const Manifest& manifest_;
  c10::Device device_;
  ImageDecoder decoder_;
  mutable std::mutex mutex_;
};

}  // namespace lamplighter

#pragma once

#include <ATen/core/Tensor.h>

#include <mutex>

#include "bundle/modules/target.h"
#include "lamplighter/image.h"
#include "lamplighter/pipeline.h"

namespace lamplighter {

// Makes pictures of tokens with the bundle's image decoder. Library convolutions round differently for other
// numbers of pictures and of threads, so every picture is decoded alone and, on the CPU, by one thread. Calls
// may come from several threads: a preview may be wanted while a picture is painted.
class Painter {
 public:
  // The manifest outlives it. Throws Error(ExitCode::bundle).
  Painter(const Manifest& manifest, const c10::Device& device);

  Image paint(const Codes& codes) const;
  // What the image decoder takes of one picture.
  Image paint(const at::Tensor& tokens) const;

 private:
  const Manifest& manifest_;
  c10::Device device_;
  ImageDecoder decoder_;
  mutable std::mutex mutex_;
};

}  // namespace lamplighter

#include "pipeline/pixel_decoder.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/from_blob.h>

#include <cmath>
#include <string>

#include "lamplighter/error.h"
#include "pipeline/one_thread.h"

namespace lamplighter {
namespace {

// Turns fp32 [3, h, w] in [-1, 1] into levels whose whole part is the byte, as the official programs do.
// pixels "round": LlamaGen's 127.5 x + 128; "truncate": Chameleon's (clamp(x, -1, 1) + 1) / 2 * 255;
// "nearest": Lumina-mGPT 2.0's (x + 1) * 127.5 to the nearest, halves to the even one.
at::Tensor to_levels(const at::Tensor& rgb, const std::string& pixels) {
  if (pixels == "truncate") return (rgb.clamp(-1, 1) + 1.0) / 2.0 * 255.0;
  if (pixels == "nearest") return ((rgb + 1.0) * 127.5).round().clamp(0, 255);
  return (rgb * 127.5 + 128.0).clamp(0, 255);
}

Image to_image(const at::Tensor& rgb, const std::string& pixels) {
  if (!std::isfinite(rgb.sum(at::kDouble).item<double>())) {  // NaN and infinity stay in a sum
    throw Error(
        ExitCode::bundle,
        "image_decoder: got pixels that are NaN or infinite, expected finite numbers; its weights are "
        "damaged");
  }
  const at::Tensor bytes = to_levels(rgb, pixels).to(at::kByte).permute({1, 2, 0}).contiguous().cpu();
  Image image{static_cast<int>(bytes.size(1)), static_cast<int>(bytes.size(0)), {}};
  const std::uint8_t* data = bytes.const_data_ptr<std::uint8_t>();
  image.pixels.assign(data, data + bytes.numel());
  return image;
}

}  // namespace

PixelDecoder::PixelDecoder(const Manifest& manifest, const c10::Device& device)
    : manifest_(manifest), device_(device), decoder_(manifest, device) {}

Image PixelDecoder::decode(const Codes& codes) const {
  return decode(
      at::from_blob(const_cast<std::int32_t*>(codes.ids.data()), {1, codes.rows, codes.columns}, at::kInt)
          .to(at::kLong));
}

Image PixelDecoder::decode(const at::Tensor& tokens) const {
  const std::lock_guard lock(mutex_);
  const OneThread alone(device_);
  return to_image(decoder_.decode(tokens.to(device_))[0], manifest_.decoder.pixels);
}

}  // namespace lamplighter

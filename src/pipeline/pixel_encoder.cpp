#include "pipeline/pixel_encoder.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/from_blob.h>

#include <cmath>
#include <cstdint>
#include <string>

#include "base/format.h"
#include "lamplighter/error.h"
#include "pipeline/one_thread.h"
#include "pipeline/output/codes_check.h"

namespace lamplighter {
namespace {

// uint8 [height, width, 3] -> fp32 [1, 3, height, width] in [-1, 1].
at::Tensor to_rgb(const Image& image, const c10::Device& device) {
  const at::Tensor bytes = at::from_blob(const_cast<std::uint8_t*>(image.pixels.data()),
                                         {image.height, image.width, 3}, at::kByte);
  return (bytes.to(at::kFloat) / 255.0 * 2.0 - 1.0).permute({2, 0, 1}).unsqueeze(0).contiguous().to(device);
}

}  // namespace

void require_encoder(const Manifest& manifest) {
  if (manifest.has("image_encoder")) return;
  throw Error(ExitCode::bundle, "bundle " + manifest.directory +
                                    " cannot read images: it lacks image_encoder; export it again, with an "
                                    "image tokenizer that holds the encoder");
}

void check_sides(const Manifest& manifest, int width, int height, const std::string& where) {
  require_encoder(manifest);
  const auto side = static_cast<int>(manifest.decoder.downsample);
  if (width < side || height < side || width % side != 0 || height % side != 0) {
    throw Error(ExitCode::input, where + ": got " + sides(width, height) +
                                     " pixels, expected sides that are multiples of " + std::to_string(side));
  }
  Codes codes{height / side, width / side, {}};
  codes.ids.resize(codes.positions());
  check_codes(manifest, codes, where, CodeRows::all);
}

PixelEncoder::PixelEncoder(const Manifest& manifest, const c10::Device& device)
    : manifest_(manifest), device_(device), encoder_(manifest, device) {}

Codes PixelEncoder::encode(const Image& image) const {
  const OneThread alone(device_);
  const at::Tensor latents = encoder_.latents(to_rgb(image, device_));
  if (!std::isfinite(latents.sum(at::kDouble).item<double>())) {  // NaN and infinity stay in a sum
    throw Error(ExitCode::bundle,
                "image_encoder: got latents that are NaN or infinite, expected finite numbers; its weights "
                "are damaged");
  }
  const at::Tensor ids = encoder_.nearest(latents)[0].to(at::kInt).contiguous().cpu();
  const std::int64_t rows = image.height / manifest_.decoder.downsample;
  const std::int64_t columns = image.width / manifest_.decoder.downsample;
  if (ids.dim() != 2 || ids.size(0) != rows || ids.size(1) != columns) {
    throw Error(ExitCode::bundle, "image_encoder: got " + sides(ids.size(0), ids.size(-1)) +
                                      " codes (rows x columns), expected " + sides(rows, columns) +
                                      "; check decoder.downsample in manifest.json");
  }
  Codes codes{static_cast<int>(rows), static_cast<int>(columns), {}};
  const std::int32_t* data = ids.const_data_ptr<std::int32_t>();
  codes.ids.assign(data, data + ids.numel());
  check_codes(manifest_, codes, "image_encoder", CodeRows::all);
  return codes;
}

}  // namespace lamplighter

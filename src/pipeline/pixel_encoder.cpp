#include "pipeline/pixel_encoder.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "base/format.h"
#include "base/message.h"
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

struct Size {
  int width = 0, height = 0;
};

// 0: it is open.
int side_of(const std::string& name, const std::optional<int>& given) {
  if (given && *given < 1)
    throw Error(ExitCode::usage, name + ": got " + std::to_string(*given) + ", expected 1 or more");
  return given.value_or(0);
}

Size size_of(const WantedSize& given, const Manifest& manifest, const Image& image) {
  const Size wanted{side_of("width", given.width), side_of("height", given.height)};
  if (manifest.grids.empty()) {
    const auto side = static_cast<int>(manifest.decoder.downsample);
    const auto whole = [side](int pixels) { return std::max(pixels / side, 1) * side; };
    return {wanted.width > 0 ? wanted.width : whole(image.width),
            wanted.height > 0 ? wanted.height : whole(image.height)};
  }
  const auto fits = [&](const Grid& grid) {
    return grid.width == image.width && grid.height == image.height;
  };
  if (wanted.width == 0 && wanted.height == 0 &&
      std::any_of(manifest.grids.begin(), manifest.grids.end(), fits))
    return {image.width, image.height};
  const Grid& grid = find_grid(manifest, wanted.width, wanted.height);
  return {grid.width, grid.height};
}

}  // namespace

Fit parse_fit(const std::string& text) {
  if (text == "crop") return Fit::crop;
  if (text == "pad") return Fit::pad;
  if (text == "stretch") return Fit::stretch;
  throw Error(ExitCode::usage, "fit: got " + quote(text) + ", expected crop, pad or stretch");
}

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

Image fit_to_bundle(const Manifest& manifest, const Image& image, const WantedSize& wanted,
                    const std::string& where) {
  require_encoder(manifest);
  const Size size = size_of(wanted, manifest, image);
  check_sides(manifest, size.width, size.height, where);
  return fit_image(image, size.width, size.height, wanted.fit);
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

#include "pipeline/continued.h"

#include <algorithm>
#include <utility>

#include "base/format.h"
#include "image/formats.h"
#include "image/pixels.h"
#include "lamplighter/error.h"
#include "pipeline/output/codes_file.h"
#include "pipeline/pixel_encoder.h"
#include "pipeline/region.h"

namespace lamplighter {
namespace {

std::int64_t count_kept(const KeptPart& part, const Codes& codes, const std::string& from) {
  if (part.region) {
    if (!part.rows && !part.tokens) return static_cast<std::int64_t>(codes.positions());
    throw Error(ExitCode::usage, std::string(part.region_name) + ", " +
                                     (part.rows ? part.rows_name : part.tokens_name) +
                                     ": got both, expected one of them");
  }
  if (!part.rows && !part.tokens) {
    const std::string rows = std::string(part.rows_name) + " N",
                      tokens = std::string(part.tokens_name) + " N";
    throw Error(ExitCode::usage,
                from + ": expected " +
                    (part.region_name == nullptr ? rows + " or " + tokens
                                                 : rows + ", " + tokens + " or " + part.region_name) +
                    " beside it");
  }
  if (part.rows && part.tokens) {
    throw Error(ExitCode::usage,
                std::string(part.rows_name) + ", " + part.tokens_name + ": got both, expected one of them");
  }
  const std::int64_t given = part.rows ? *part.rows : *part.tokens;
  const std::int64_t most = part.rows ? codes.rows : static_cast<std::int64_t>(codes.positions());
  if (given < 1 || given > most) {
    throw Error(ExitCode::usage, std::string(part.rows ? part.rows_name : part.tokens_name) + ": got " +
                                     std::to_string(given) + ", expected 1.." + std::to_string(most) +
                                     ", as " + from + " holds");
  }
  return part.rows ? given * codes.columns : given;
}

// The grid of the codes, else the first one with rows of their length.
const Grid& grid_of(const Manifest& manifest, const std::string& from, const Codes& codes) {
  const Grid* found = nullptr;
  for (const Grid& grid : manifest.grids) {
    if (grid.columns != codes.columns) continue;
    if (grid.rows == codes.rows) return grid;
    if (found == nullptr) found = &grid;
  }
  if (found != nullptr) return *found;
  throw Error(ExitCode::input, from + ": got rows of " +
                                   counted(static_cast<std::size_t>(codes.columns), "code") +
                                   ", which no grid of bundle " + manifest.name + " has");
}

void require_index(std::size_t index, std::size_t images, const std::string& from, const char* name) {
  if (index < images) return;
  throw Error(ExitCode::usage, std::string(name) + ": got " + std::to_string(index) + ", expected 0.." +
                                   std::to_string(images - 1) + ", as " + from + " holds");
}

std::optional<int> wanted_side(int side) {
  return side > 0 ? std::optional(side) : std::nullopt;
}

}  // namespace

void Continued::apply(const Manifest& manifest, Request& request) const {
  if (from.empty()) return;
  if (request.width == 0 && request.height == 0) {
    const Grid& grid = grid_of(manifest, from, codes);
    request.width = grid.width;
    request.height = grid.height;
  }
  const Grid& grid = find_grid(manifest, request.width, request.height);
  if (grid.columns != codes.columns) {
    throw Error(ExitCode::usage, from + ": got rows of " +
                                     counted(static_cast<std::size_t>(codes.columns), "code") +
                                     ", expected " + std::to_string(grid.columns) + " for images of " +
                                     sides(grid.width, grid.height));
  }
  if (region) request.region = whole_tokens(grid, *region);
  if (codes.ids.empty()) {
    request.kept.assign(static_cast<std::size_t>(kept), 0);
  } else {
    request.kept.assign(codes.ids.begin(), codes.ids.begin() + kept);
  }
}

void Continued::encode(TextToImage& engine) {
  if (!image) return;
  codes = engine.encode(*image);
  image.reset();
}

Continued parse_continued(std::string_view bytes, const std::string& from, std::size_t index,
                          const char* index_name) {
  if (!image_kind(bytes).empty()) {
    require_index(index, 1, from, index_name);
    return {from, {}, 0, parse_image(bytes, from)};
  }
  const std::size_t first = bytes.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || bytes[first] != '{') {
    throw Error(ExitCode::input, from + ": got " +
                                     (bytes.empty() ? "an empty file" : "neither an image nor codes") +
                                     ", expected " + a_readable("image") +
                                     ", or the tokens of one, as `encode` and `generate --save-codes` write "
                                     "them");
  }
  std::vector<SavedCodes> images = parse_codes(bytes, from);
  require_index(index, images.size(), from, index_name);
  return {from, std::move(images[index].codes), 0, std::nullopt};
}

void fit_to_request(const Manifest& manifest, const Request& request, Fit fit, Continued& continued) {
  const WantedSize wanted{wanted_side(request.width), wanted_side(request.height), fit};
  continued.image = fit_to_bundle(manifest, *continued.image, wanted, continued.from);
  const Grid& grid = find_grid(manifest, continued.image->width, continued.image->height);
  continued.codes = {grid.rows, grid.columns, {}};
}

void keep_part(const KeptPart& part, Continued& continued) {
  continued.kept = count_kept(part, continued.codes, continued.from);
  continued.region = part.region;
}

void begin_with(Continued& continued, TextToImage& engine, std::vector<Request>& requests) {
  for (Request& request : requests) {
    continued.apply(engine.manifest(), request);
    TextToImage::check(engine.manifest(), request);
  }
  if (!continued.image) return;
  continued.encode(engine);
  for (Request& request : requests) continued.apply(engine.manifest(), request);
}

}  // namespace lamplighter

#include "serve/edit.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "base/format.h"
#include "image/pixels.h"
#include "pipeline/region.h"
#include "serve/fields.h"
#include "serve/mask.h"
#include "serve/parse.h"

namespace lamplighter {
namespace {

// Of an image that a request brings: far above what models generate, and little memory for one at a time.
constexpr std::uint64_t kMostPixels = std::uint64_t{1} << 24;

// Held by who reads an image.
std::mutex& one_at_a_time() {
  static std::mutex mutex;
  return mutex;
}

// What the mask keeps, and a warning that says it.
KeptPart part_of_mask(const EditWanted& edit, const FittedSides& sides, std::vector<std::string>& warnings) {
  const ClearImage mask = edit.marks_itself ? parse_clear_image(edit.image, "image", kMostPixels)
                                            : parse_clear_image(edit.mask, "mask", kMostPixels);
  if (edit.marks_itself && !has_clear(mask)) refuse_no_mask(edit.form);
  KeptPart part = kept_by(mask, edit.form, sides);
  if (part.rows && edit.how) {  // a lower part with settings of a region
    const int top = static_cast<int>(*part.rows) * sides.token;
    part.region = Region{0, top, sides.fitted_width, sides.fitted_height - top};
    part.rows.reset();
  }
  if (part.region) {
    warnings.push_back(
        "mask: generated anew is region " + region_text(*part.region) + " of " +
        lamplighter::sides(sides.fitted_width, sides.fitted_height) + " pixels, " +
        lamplighter::sides(part.region->width / sides.token, part.region->height / sides.token) + " tokens");
  } else {
    const auto rows = static_cast<std::size_t>(*part.rows);
    warnings.push_back("mask: the upper " + std::to_string(rows * static_cast<std::size_t>(sides.token)) +
                       " of " + std::to_string(sides.fitted_height) + " pixel rows are kept, " +
                       counted(rows, "row") + " of tokens");
  }
  return part;
}

void set_how(const std::optional<Region>& how, KeptPart& part) {
  if (!part.region || !how) return;
  part.region->behind = how->behind;
  part.region->candidates = how->candidates;
  part.region->pick = how->pick;
}

void begin(const EditWanted& edit, TextToImage& engine, const RequestRules& rules, PlannedRequests& plan) {
  const Manifest& manifest = engine.manifest();
  Continued continued{"image", {}, 0, parse_image(edit.image, "image", kMostPixels)};
  const int width = continued.image->width, height = continued.image->height;
  fit_to_request(manifest, plan.requests.front(), edit.fit, continued);
  const FittedSides fitted{width,
                           height,
                           continued.image->width,
                           continued.image->height,
                           static_cast<int>(manifest.decoder.downsample),
                           edit.fit};
  if (width != fitted.fitted_width || height != fitted.fitted_height) {
    const std::string given = sides(width, height), wanted = sides(fitted.fitted_width, fitted.fitted_height);
    if (rules.strict) throw Error(ExitCode::input, "image: got " + given + " pixels, expected " + wanted);
    plan.warnings.push_back("image: got " + given + " pixels, it was " + fitted_word(edit.fit) + " to " +
                            wanted);
  }
  const bool has_mask = edit.marks_itself || !edit.mask.empty();
  KeptPart part = has_mask ? part_of_mask(edit, fitted, plan.warnings) : edit.part;
  set_how(edit.how, part);
  keep_part(part, continued);
  for (Request& request : plan.requests) continued.apply(manifest, request);
  if (part.region) {
    const std::string note = note_whole_tokens("region", *part.region, *plan.requests.front().region);
    if (!note.empty()) plan.warnings.push_back(note);
    plan.warnings.push_back(std::string("region: ") + kRegionSight);
  }
  check_pixels(manifest, plan.requests.front(), rules.limits.pixels);
  begin_with(continued, engine, plan.requests);
}

}  // namespace

const char* fitted_word(Fit fit) {
  return fit == Fit::crop ? "cropped" : fit == Fit::pad ? "padded" : "stretched";
}

Image read_one_image(const std::string& file) {
  const std::lock_guard lock(one_at_a_time());
  return parse_image(file, "image", kMostPixels);
}

void require_image_encoder(const Manifest& manifest) {
  if (manifest.has("image_encoder")) return;
  throw HttpError(501, "not_implemented",
                  "model " + manifest.name +
                      " cannot read images: its bundle has no image encoder; export it with an image "
                      "tokenizer that holds one");
}

void begin_edit(const EditWanted& edit, TextToImage& engine, const RequestRules& rules,
                PlannedRequests& plan) {
  require_image_encoder(engine.manifest());
  const std::lock_guard lock(one_at_a_time());
  with_http_errors([&] { begin(edit, engine, rules, plan); });
}

}  // namespace lamplighter

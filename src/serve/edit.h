#pragma once

#include <optional>
#include <string>

#include "lamplighter/image.h"
#include "lamplighter/pipeline.h"
#include "pipeline/continued.h"

namespace lamplighter {

struct PlannedRequests;
struct RequestRules;

// How a mask marks the pixels that are generated anew.
enum class MaskForm {
  clear,  // they are less than half opaque
  white,  // they are brighter than half; where a mask has clear pixels, those that are opaque
  black,  // the others of `white`
};

// An image of which a part is kept, as a request gives it.
struct EditWanted {
  std::string image, mask;    // files; no mask: `part` says what is kept, or the image
  bool marks_itself = false;  // as in OpenAI's API: what is clear in the image is generated anew
  MaskForm form = MaskForm::clear;
  KeptPart part;
  std::optional<Region> how;  // the behind, candidates and pick of a region, where one of them is given
  Fit fit = Fit::crop;
};

// An image file that a request brings; one at a time is read. Throws Error(ExitCode::input).
Image read_one_image(const std::string& file);

// What is done to an image of other sides: "cropped".
const char* fitted_word(Fit fit);

// Throws HttpError (501) unless the bundle has an image encoder.
void require_image_encoder(const Manifest& manifest);

// Lets the requests keep what the edit wants, and adds warnings of what is done otherwise than it says. One
// caller at a time reads an image. Throws HttpError, also like require_image_encoder.
void begin_edit(const EditWanted& edit, TextToImage& engine, const RequestRules& rules,
                PlannedRequests& plan);

}  // namespace lamplighter

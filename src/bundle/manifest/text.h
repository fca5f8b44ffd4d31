#pragma once

#include <cstdint>

#include "lamplighter/bundle.h"

// Texts about images. The decode loop generates an answer as it generates an image: as one row of tokens.
namespace lamplighter {

// Optional method of a target's archive: hidden [S, R, H] -> [S, R, ids that are no codes of images].
constexpr const char* kTextLogits = "text_logits";

// Ids of a prompt but the question's: the image's codes and what stands around them.
std::int64_t fixed_ids(const Manifest& manifest);

// The manifest of a model that generates answers of up to `most` tokens in place of images. Its codes are ids
// of the vocabulary. Its drafters draft texts. It has no trees and neighbours: these are made for
// images.
Manifest text_manifest(const Manifest& manifest, std::int64_t most);

// Throws Error(ExitCode::bundle) unless the bundle describes images.
void require_text(const Manifest& manifest);

}  // namespace lamplighter

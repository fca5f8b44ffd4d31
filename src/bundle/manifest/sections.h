#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/json.h"
#include "lamplighter/bundle.h"

// Each function reads a part of manifest.json with the manifest's `reader`. They throw
// Error(ExitCode::bundle) for entries that the schema does not allow.
namespace lamplighter {

constexpr std::int64_t kMaxIds = std::int64_t{1} << 31;   // vocabularies
constexpr std::int64_t kMaxSize = std::int64_t{1} << 20;  // widths, lengths, counts of layers and heads

// Archives and data files; the list of files must have been read.
void read_modules(JsonReader& reader, Manifest& manifest);
// The drafters of an object that has some, and the first one's name.
void read_drafters(JsonReader& reader, const Manifest& manifest,
                   std::map<std::string, DraftModelEntry>& drafters, std::string& first);
void read_data(JsonReader& reader, Manifest& manifest);

// The filters of tokens and their temperature.
void read_filters(JsonReader& reader, SamplingOptions& sampling);
// What images are described with.
void read_text(JsonReader text, Manifest& manifest);
// Prompt, grids and sampling.
void read_generating(JsonReader& reader, Manifest& manifest);
// Sizes of tokens, target, cache and decoder.
void read_shapes(JsonReader& reader, Manifest& manifest);

}  // namespace lamplighter

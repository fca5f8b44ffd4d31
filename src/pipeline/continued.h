#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lamplighter/bundle.h"
#include "lamplighter/image.h"
#include "lamplighter/options.h"
#include "lamplighter/pipeline.h"

namespace lamplighter {

// How much of another image is kept: rows of tokens, tokens row by row, or all but a region; one of them is
// set.
struct KeptPart {
  std::optional<std::int64_t> rows, tokens;
  const char *rows_name = "keep_rows", *tokens_name = "keep_tokens";  // what messages call them
  std::optional<Region> region = {};
  const char* region_name = nullptr;  // null: nothing gives one
};

// What images keep of another image: its first tokens, or all but a region.
struct Continued {
  std::string from;                   // names the other image in messages; empty: images begin anew
  Codes codes;                        // without ids as long as the image is not encoded
  std::int64_t kept = 0;              // the first of the codes
  std::optional<Image> image;         // to be encoded: there are no codes yet
  std::optional<Region> region = {};  // is not kept

  // Lets a request keep the codes; zeros stand for codes of an image that is not encoded, so that the request
  // can be checked. A request without a size gets the grid of the codes. Throws Error (usage, input) where
  // they do not fit.
  void apply(const Manifest& manifest, Request& request) const;
  // Encodes the image, once. Throws like TextToImage::encode.
  void encode(TextToImage& engine);
};

// Reads another image: the pixels of an image file, or image `index` of a file of codes. `from` names the
// bytes and `index_name` the index in messages. What is kept is not set. Throws Error (usage, input).
Continued parse_continued(std::string_view bytes, const std::string& from, std::size_t index = 0,
                          const char* index_name = "index");

// Gives the image the size that `request` asks for, or else one of the bundle's (fit_to_bundle). Needs no
// weights. Throws Error (usage, input, bundle).
void fit_to_request(const Manifest& manifest, const Request& request, Fit fit, Continued& continued);
// Sets what is kept of the codes, or of the image in its new size. Throws Error (usage).
void keep_part(const KeptPart& part, Continued& continued);

// Lets requests of one size begin so: checks them, then encodes the image. Throws what check and encode
// throw.
void begin_with(Continued& continued, TextToImage& engine, std::vector<Request>& requests);

}  // namespace lamplighter

#pragma once

#include <optional>
#include <string>

#include "base/json.h"
#include "lamplighter/image.h"
#include "lamplighter/pipeline.h"
#include "lamplighter/sinks.h"

namespace lamplighter {

// Everything that decides an image, as JSON. Times and batch sizes are left out: equal runs give equal bytes.
Json describe_image(const Origin& origin, const Request& request, const Result& result);

// What of it says what an image took over from another one, and how its region was generated.
void describe_kept(const Request& request, const Statistics& statistics, Json& json);

// tokens_per_pass (lamplighter/record.h) as an array of the grid's rows.
Json tokens_per_pass_rows(const Result& result);

// The text chunks of an image: "parameters" in the form that image viewers and web UIs read, and
// "lamplighter", the JSON.
ImageText image_text(const Json& image);

// The settings that an image was generated with.
struct Recorded {
  Request request;
  MethodOptions method;
  std::string model, manifest_sha256, dtype, cache_dtype, instructions;  // as in Origin
  std::int64_t kept_tokens = 0;       // that it took over from another image
  std::optional<Region> region = {};  // the part of that image that it did not take over
};

// Parses the JSON of describe_image; `where` names it in messages. Throws Error(ExitCode::input).
Recorded parse_image(const Json& image, const std::string& where);

// Reads the settings from a PNG file. Throws Error(ExitCode::input).
Recorded read_recorded(const std::string& png_path);

}  // namespace lamplighter

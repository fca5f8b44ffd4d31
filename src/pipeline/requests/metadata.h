#pragma once

#include <string>

#include "base/json.h"
#include "lamplighter/image.h"
#include "lamplighter/pipeline.h"
#include "lamplighter/sinks.h"

namespace lamplighter {

// Everything that decides a picture, as JSON. Neither times nor batch sizes: equal runs give equal bytes.
Json describe_picture(const Origin& origin, const Request& request, const Result& result);

// The text chunks of a picture: "parameters" in the form that image viewers and web UIs read, and
// "lamplighter", the JSON.
PictureText picture_text(const Json& picture);

// What drew a picture.
struct Recorded {
  Request request;
  MethodOptions method;
  std::string model, manifest_sha256, dtype, cache_dtype, instructions;  // as in Origin
};

// What is behind such a JSON; `where` names it in messages. Throws Error(ExitCode::input).
Recorded parse_picture(const Json& picture, const std::string& where);

// What a picture was drawn with. Throws Error(ExitCode::input).
Recorded read_recorded(const std::string& png_path);

}  // namespace lamplighter

#pragma once

#include <string>

#include "lamplighter/api.h"
#include "lamplighter/options.h"
#include "lamplighter/pipeline.h"
#include "lamplighter/sinks.h"

namespace lamplighter {

// A request from a JSON object whose fields are the long flags of `generate` with underscores: prompt or
// class, seed, width, height, those of sampling, method and its options. What is not given keeps its default;
// the method is set when a field speaks of it. Throws Error: usage for fields that are unknown or of another
// type, input for captions.
LAMPLIGHTER_API Request parse_request(const std::string& json);

// Everything that decides a picture, as the JSON object that picture files carry.
LAMPLIGHTER_API std::string describe(const Origin& origin, const Request& request, const Result& result);

}  // namespace lamplighter

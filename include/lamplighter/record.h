#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lamplighter/api.h"
#include "lamplighter/options.h"
#include "lamplighter/pipeline.h"
#include "lamplighter/sinks.h"

namespace lamplighter {

// Parses a request from a JSON object whose fields are the long flags of `generate` with underscores: prompt
// or class, seed, width, height, sampling, method and its options. A field that is missing keeps its default;
// the method is set when a field names it or one of its options. Throws Error: usage for fields that are
// unknown or of another type, input for captions.
LAMPLIGHTER_API Request parse_request(const std::string& json);

// A field of parse_request that is an option of methods.
struct OptionField {
  enum class Type { text, integer, number, numbers };
  std::string name;
  Type type = Type::text;
  std::string meaning;
  std::vector<std::string> choices;  // of texts; empty: any text
};

// All of them, in the order of --help.
LAMPLIGHTER_API std::vector<OptionField> option_fields();

// For every token of the grid, in raster order, how many tokens the target pass committed that committed it.
LAMPLIGHTER_API std::vector<std::int64_t> tokens_per_pass(const Result& result);

// Everything that decides an image, as the JSON object that image files carry.
LAMPLIGHTER_API std::string describe(const Origin& origin, const Request& request, const Result& result);

}  // namespace lamplighter

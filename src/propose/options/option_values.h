#pragma once

#include "base/json.h"
#include "propose/options/options.h"

// The values of options, of any type: what the table in options.cpp does not say. Beside these stand is_set
// and parse_option.
namespace lamplighter {

// Of an option that is set.
Json to_json(const MethodOptions& method, const MethodOption& option);

// Of an option that `reader` has.
void read_value(MethodOptions& method, const MethodOption& option, JsonReader& reader);

// Throws Error(usage) when the value is out of the option's range or choices.
void check_value(const MethodOptions& method, const MethodOption& option);

}  // namespace lamplighter

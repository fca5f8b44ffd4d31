#pragma once

#include "base/json.h"
#include "draft/options/options.h"

// The values of options, of any type; also is_set and parse_option of options.h.
namespace lamplighter {

// "0.05".
std::string number_text(float number);

// The value of an option that is set.
Json to_json(const MethodOptions& method, const MethodOption& option);

// Sets an option that `reader` has.
void read_value(MethodOptions& method, const MethodOption& option, JsonReader& reader);

void set_value(MethodOptions& method, const MethodOption& option, const MethodOption::Value& value);

// Throws Error(usage) when the value is out of the option's own limits or of these.
void check_value(const MethodOptions& method, const MethodOption& option, const Limits& limits);

}  // namespace lamplighter

#pragma once

#include <string>

#include "base/json.h"

namespace lamplighter {

// Objects of an array as rows under a head line, as RFC 4180 has it: fields of inner objects are columns of
// their own (latency_ms.p50), lists one cell of JSON, null an empty one. A field that a row lacks is empty;
// lists of objects, raw measurements, are left out.
std::string to_csv(const Json& rows);

}  // namespace lamplighter

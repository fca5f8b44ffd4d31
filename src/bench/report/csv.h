#pragma once

#include <string>

#include "base/json.h"

namespace lamplighter {

// Converts an array of objects to CSV (RFC 4180) with a head line. Fields of nested objects become columns
// (latency_ms.p50), lists a cell of JSON; null and missing fields are empty. Lists of objects (raw
// measurements) are omitted.
std::string to_csv(const Json& rows);

}  // namespace lamplighter

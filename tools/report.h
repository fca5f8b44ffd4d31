#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "lamplighter/pipeline.h"

namespace lamplighter::cli {

// What one picture cost, in one line: tokens, passes of the target, tokens per second.
std::string summary(const Statistics& statistics);

// The same at length: milliseconds by stage, and by depth how much was drafted and accepted.
std::vector<std::string> details(const Statistics& statistics);

// A JSON line about a picture: where it is, its description (metadata.h), and the statistics.
Json report(const std::string& path, const Json& picture, const Statistics& statistics);

}  // namespace lamplighter::cli

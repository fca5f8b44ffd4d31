#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "lamplighter/pipeline.h"

namespace lamplighter::cli {

// Sums up the cost of an image in one line: tokens, target passes, tokens per second.
std::string summary(const Statistics& statistics);

// Lists the cost of an image: milliseconds of every stage, and tokens drafted and accepted at every depth.
std::vector<std::string> details(const Statistics& statistics);

// Builds the JSON line of an image: its file, its metadata (metadata.h) and its statistics.
Json report(const std::string& path, const Json& image, const Result& result);

}  // namespace lamplighter::cli

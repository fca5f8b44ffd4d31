#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lamplighter/image.h"
#include "lamplighter/options.h"

namespace lamplighter {

// An image and a question about it. What is not set comes from the bundle.
struct DescribeRequest {
  Image image;          // of any size: it gets the sides of the bundle's first grid
  Fit fit = Fit::crop;  // how
  std::string prompt;   // UTF-8, may be empty
  std::uint64_t seed = 42;
  std::optional<std::int64_t> max_tokens;  // of the answer; not set: 256, or as many as there is room for
  std::optional<float> temperature, top_p;
  std::optional<std::int64_t> top_k;
};

// Receives what an answer has become longer by, whole characters, after every cycle; it may be nothing.
// Return false to stop: TextToImage::describe throws Error(ExitCode::interrupted).
using TextCallback = std::function<bool(const std::string& more)>;

}  // namespace lamplighter

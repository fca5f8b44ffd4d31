#pragma once

#include <optional>
#include <string>

namespace lamplighter {

// How an answer's images are encoded.
struct ImageFormat {
  std::string name = "png";    // png, jpeg or webp
  std::optional<int> quality;  // jpeg: 1 to 100, not set: 95; webp: 0 to 100, 100 or not set: lossless

  std::string type() const { return "image/" + name; }
};

}  // namespace lamplighter

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "lamplighter/api.h"

namespace lamplighter {

// Where one image goes: a pattern with %d or %04d (number of the image), {index} or {index:04d} (the
// same), {seed} and {prompt} (the caption's words), or a folder (one that exists, or a name that ends in
// "/"), which stands for FOLDER/%04d.png, whatever its own name holds. "-" is standard output, for one image
// alone.
struct OutputRequest {
  std::string pattern;
  std::size_t index = 0;
  std::uint64_t seed = 0;
  std::string prompt = {};
};

// Whether the pattern gives every number a path of its own.
LAMPLIGHTER_API bool is_numbered(const std::string& pattern);

// Throws Error(ExitCode::usage) naming `what` for endings of other kinds of images.
LAMPLIGHTER_API void check_image_name(const std::string& what, const std::string& path);

// Paths of the images, in order. A pattern that would give two images one name gets "-%04d" before
// its ending, or becomes a folder where it has none. Throws Error(ExitCode::usage) for malformed patterns,
// endings of images that cannot be written and names that still collide.
LAMPLIGHTER_API std::vector<std::string> expand_outputs(const std::vector<OutputRequest>& requests);

// Throws Error(ExitCode::usage) when two of the paths name one file.
LAMPLIGHTER_API void check_distinct(const std::vector<std::string>& paths);

// Creates the folders that patterns stand for, checks that every path can be written, and removes the partial
// files of runs that were killed. Throws Error(ExitCode::output).
LAMPLIGHTER_API void prepare_outputs(const std::vector<OutputRequest>& requests,
                                     const std::vector<std::string>& paths, bool overwrite);

}  // namespace lamplighter

#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "lamplighter/bundle.h"
#include "lamplighter/image.h"

namespace lamplighter::cli {

// How an image gets a size of the bundle.
struct FitFlags {
  std::string how;  // empty: crop
  std::optional<int> width, height;

  // Returns the flag.
  CLI::Option* add_fit(CLI::App& command);
};

// The image with sides that the bundle's image encoder takes: the flags' sides, its own where the bundle has
// them, else the sides of the bundle's first grid. For a bundle without grids its own are rounded down to
// whole tokens. Throws Error (usage; bundle where there is no encoder; input beginning with `where`).
Image fitted_image(const FitFlags& flags, const Manifest& manifest, const Image& image,
                   const std::string& where);

}  // namespace lamplighter::cli

#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "lamplighter/bundle.h"
#include "lamplighter/image.h"

namespace lamplighter::cli {

// How a picture becomes an image of a bundle's size.
struct PictureFlags {
  std::string fit;  // empty: crop
  std::optional<int> width, height;

  // Returns the flag.
  CLI::Option* add_fit(CLI::App& command);
};

// The picture with sides that the bundle's image encoder takes: those of the flags, its own where the bundle
// has them, else those of the bundle's first grid. For a bundle without grids its own are rounded down to
// whole tokens. Throws Error (usage; bundle where there is no encoder; input beginning with `where`).
Image fit_picture(const PictureFlags& flags, const Manifest& manifest, const Image& picture,
                  const std::string& where);

}  // namespace lamplighter::cli

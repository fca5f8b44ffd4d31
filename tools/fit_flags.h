#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "lamplighter/bundle.h"
#include "lamplighter/image.h"

namespace lamplighter::cli {

// How an image gets a size of the bundle.
struct FitFlags {
  std::optional<std::string> how;  // not set: crop
  std::optional<int> width, height;

  // Returns the flag.
  CLI::Option* add_fit(CLI::App& command);
  // Throws Error(ExitCode::usage) for other words than the flag takes.
  Fit fit() const;
  // As fit_to_bundle. Also throws like fit.
  Image apply(const Manifest& manifest, const Image& image, const std::string& where) const;
};

}  // namespace lamplighter::cli

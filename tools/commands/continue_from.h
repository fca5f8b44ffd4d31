#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "lamplighter/bundle.h"
#include "lamplighter/options.h"
#include "pipeline/continued.h"
#include "tools/fit_flags.h"

namespace lamplighter::cli {

// Flags of a run whose images begin with the first tokens of another one.
struct ContinueFlags {
  std::string from;
  std::size_t index = 0;  // of the image in its file
  std::optional<std::int64_t> rows, tokens;
  FitFlags fit;

  // `images`: how many are generated for a caption.
  void add(CLI::App& command, int& images);
  // `recorded_tokens`: how many the image kept whose settings are used.
  KeptPart part(std::int64_t recorded_tokens) const;
};

// Reads the codes or the image that the flags name. `params_from`: the image whose settings are used, if
// any, and how many tokens it kept. Throws Error (usage, input).
Continued read_continued(const ContinueFlags& flags, const std::string& params_from,
                         std::int64_t recorded_tokens);

// Gives the image the size of `request`, or else one of the bundle's, and checks how much of it is kept.
// Needs no weights. Throws Error (usage, input, bundle).
void fit_continued(const ContinueFlags& flags, std::int64_t recorded_tokens, const Manifest& manifest,
                   const Request& request, Continued& continued);

}  // namespace lamplighter::cli

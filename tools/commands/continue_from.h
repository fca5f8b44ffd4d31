#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lamplighter/bundle.h"
#include "lamplighter/options.h"
#include "pipeline/continued.h"
#include "pipeline/metadata/metadata.h"
#include "tools/fit_flags.h"
#include "tools/requests.h"

namespace lamplighter::cli {

// Flags of a run whose images keep the first tokens of another one, or all but a region.
struct ContinueFlags {
  std::string from;
  std::size_t index = 0;  // of the image in its file
  std::optional<std::int64_t> rows, tokens;
  std::string region;
  std::optional<std::string> behind, pick;
  std::optional<int> candidates;
  FitFlags fit;

  // `jobs`: get how many images are generated for a caption.
  void add(CLI::App& command, JobFlags& jobs);
  // `recorded`: the settings that are used, with what that image kept. Throws Error(usage).
  KeptPart part(const Recorded& recorded) const;

 private:
  void add_region(CLI::App& command, CLI::Option& file, const std::vector<CLI::Option*>& others);
};

// Reads the codes or the image that the flags name. `params_from`: the image whose settings are used, if any.
// Throws Error (usage, input).
Continued read_continued(const ContinueFlags& flags, const std::string& params_from,
                         const Recorded& recorded);

// Gives the image the size of `request`, or else one of the bundle's, and checks how much of it is kept.
// Needs no weights. Throws Error (usage, input, bundle).
void fit_continued(const ContinueFlags& flags, const Recorded& recorded, const Manifest& manifest,
                   const Request& request, Continued& continued);

// A line on the tokens of a region, which `whole` has, where it is no region of whole tokens; else nothing.
std::string note_region(const Continued& continued, const Region& whole);

}  // namespace lamplighter::cli

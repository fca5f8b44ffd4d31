#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "image/canvas.h"
#include "lamplighter/sinks.h"

namespace lamplighter::cli {

// Flags for the files that a run writes beside its images, each by a sink.
class OutputFlags {
 public:
  OutputFlags();

  void add(CLI::App& command);

  // Returns the requested files. Throws Error(ExitCode::usage) for unknown image formats.
  std::vector<std::string> paths() const;
  // Whether one of them needs RuntimeOptions::record_drafts.
  bool show_drafts() const;
  // Throws Error(ExitCode::usage) when one of them cannot hold `count` images of this size.
  void check_room(std::int64_t count, const Extent& image) const;
  // Throws Error(ExitCode::usage) when one of them needs codes and the tokens of the bundle are continuous.
  void check_tokens(const Manifest& manifest) const;
  // The file of codes of a bundle that generates no images; empty: not requested. Throws Error(usage) for
  // files of images.
  std::string codes_alone(const Manifest& manifest) const;
  // Adds the sinks that write them.
  void add_sinks(const Origin& origin, TextToImage& engine, bool overwrite, Sinks& sinks) const;

 private:
  std::vector<std::string> paths_;  // one for every known output, in order; empty: not requested
};

}  // namespace lamplighter::cli

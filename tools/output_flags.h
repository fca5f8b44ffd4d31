#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "image/canvas.h"
#include "lamplighter/sinks.h"

namespace lamplighter::cli {

// Files that are written about a set of pictures besides the pictures themselves, each by a sink.
class OutputFlags {
 public:
  OutputFlags();

  void add(CLI::App& command);

  // The files that are wanted. Throws Error(ExitCode::usage) for names of other kinds of pictures.
  std::vector<std::string> paths() const;
  // Throws Error(ExitCode::usage) when one of them cannot hold `count` pictures of this size.
  void check_room(std::int64_t count, const Extent& picture) const;
  // The same when one of them is about codes, which the bundle has none of.
  void check_tokens(const Manifest& manifest) const;
  // Adds what writes them.
  void add_sinks(const Origin& origin, TextToImage& engine, bool overwrite, Sinks& sinks) const;

 private:
  std::vector<std::string> paths_;  // of all that there are, in order; empty: not wanted
};

}  // namespace lamplighter::cli

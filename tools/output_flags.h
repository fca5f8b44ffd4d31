#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "lamplighter/sinks.h"

namespace lamplighter::cli {

// Files that are written about a set of pictures besides the pictures themselves, each by a sink.
class OutputFlags {
 public:
  OutputFlags();

  void add(CLI::App& command);

  // The files that are wanted. Throws Error(ExitCode::usage) for names of other kinds of pictures.
  std::vector<std::string> paths() const;
  // Adds what writes them.
  void add_sinks(const Origin& origin, TextToImage& engine, Sinks& sinks) const;

 private:
  std::vector<std::string> paths_;  // of all that there are, in order; empty: not wanted
};

}  // namespace lamplighter::cli

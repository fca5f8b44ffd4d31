#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>

#include "lamplighter/bundle.h"
#include "lamplighter/options.h"

namespace lamplighter::cli {

// Which bundle, and where it runs.
struct ModelFlags {
  std::string model;
  RuntimeOptions runtime;
  bool skip_checksums = false, no_graph = false;

  void add_model(CLI::App& command, bool positional);
  void add_runtime(CLI::App& command);
  void add_batch_size(CLI::App& command);

  // The bundle's folder: --model, else LAMPLIGHTER_MODEL, else the demo bundle beside the program.
  // Throws Error(ExitCode::bundle) when there is none.
  std::string folder() const;
  RuntimeOptions options() const;

  // The words that the demo bundle knows, under a command's help. Comes after all else that its footer holds.
  static void add_known_words(CLI::App& command);
};

// How much is said on standard error.
struct TalkFlags {
  bool quiet = false, verbose = false;

  void add(CLI::App& command);
};

// Values of any request, all optional.
struct SamplingFlags {
  std::optional<float> cfg_scale, temperature, top_p;
  std::optional<std::int64_t> top_k, cfg_interval;
  std::optional<std::string> negative_prompt;
  std::optional<int> width, height;

  void add(CLI::App& command);
  void apply(Request& request) const;
};

// How tokens are committed, as MethodOptions names it. What is not given keeps the value it has.
struct MethodFlags {
  MethodOptions options;

  void add(CLI::App& command);
  // What the flags say over what a picture records. Where the flags choose another method, rule or tree, the
  // recorded values that belonged to the old one are dropped.
  MethodOptions over(const MethodOptions& recorded) const;

 private:
  CLI::Option* method_ = nullptr;
};

// "-1" (a random seed) or 0 .. 2^64 - 1. Throws Error(ExitCode::usage).
std::uint64_t parse_seed(const std::string& text);

// Gives the flags named in a JSON file ({"cfg_scale": 5, "prompt": ["a", "b"]}) to a command, except those
// that the command line or the environment has set, or that one of those excludes. Throws Error (input,
// usage).
void apply_config(CLI::App& command, const std::string& path);

}  // namespace lamplighter::cli

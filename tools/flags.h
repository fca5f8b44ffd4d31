#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lamplighter/bundle.h"
#include "lamplighter/options.h"

namespace lamplighter::cli {

// Help that several commands share.
inline constexpr const char* kModelHelp =
    "Folder of the bundle; also from the environment, LAMPLIGHTER_MODEL";
inline constexpr const char* kModelUsual = "the demo bundle";
inline constexpr const char* kConfigHelp = "JSON file with values of flags, as in {\"cfg_scale\": 5}";
inline constexpr const char* kSkipChecksums = "Load the bundle's files without comparing their checksums";

// The bundle, and the device and precision that it runs with.
struct ModelFlags {
  std::string model;
  RuntimeOptions runtime;
  bool skip_checksums = false, no_graph = false;

  void add_model(CLI::App& command, bool positional);
  void add_runtime(CLI::App& command);
  void add_batch_size(CLI::App& command);

  // Returns the bundle's folder: --model, else LAMPLIGHTER_MODEL, else the demo bundle beside the program.
  // Throws Error(ExitCode::bundle) if there is none.
  std::string folder() const;
  RuntimeOptions options() const;

  // Adds the vocabulary of the demo bundle to a command's help.
  static void add_known_words(CLI::App& command);
};

// How much a command prints on standard error.
struct LogFlags {
  bool quiet = false, verbose = false;

  void add(CLI::App& command);
};

// Sampling values of a request, all optional.
struct SamplingFlags {
  std::optional<float> cfg_scale, temperature, top_p;
  std::optional<std::int64_t> top_k, cfg_interval;
  std::optional<std::string> negative_prompt;
  std::optional<int> width, height;

  void add(CLI::App& command);
  void apply(Request& request) const;
};

// The decoding method and its options.
struct MethodFlags {
  MethodOptions options;

  void add(CLI::App& command);
  // Merges the flags over the options that an image records. If the flags choose another method, rule or
  // tree, drops the recorded options of the old one.
  MethodOptions over(const MethodOptions& recorded) const;

 private:
  CLI::Option* method_ = nullptr;
};

// Parses "-1" (a random seed) or 0 .. 2^64 - 1. Throws Error(ExitCode::usage).
std::uint64_t parse_seed(const std::string& text);

// Sets flags of a command from a JSON file: {"cfg_scale": 5, "prompt": ["a", "b"]}. Flags on the command line
// and environment variables take precedence, and the flags that they exclude stay unset. Throws Error (input,
// usage).
void apply_config(CLI::App& command, const std::string& path);

}  // namespace lamplighter::cli

#pragma once

#include <string>
#include <vector>

#include "flags.h"
#include "lamplighter/options.h"

namespace lamplighter::cli {

// One picture to draw, and where it goes.
struct Job {
  Request request;
  std::string output;  // pattern
  std::string origin;  // for messages: "prompt 2", "prompts.txt line 3"
};

// What the flags say about all pictures of a run.
struct JobFlags {
  std::vector<std::string> prompts;
  std::string prompt_file;  // "-" = standard input
  std::optional<std::int64_t> class_id;
  std::string seed = "42";
  std::string output = "output.png";
  int batch_count = 1;
  SamplingFlags sampling;

  void add(CLI::App& command);
};

// The pictures of a run. Picture i draws with seed + i; a line of a prompt file with a seed of its own counts
// from there. `defaults` holds what neither flags nor lines set. Throws Error (usage, input).
std::vector<Job> make_jobs(const JobFlags& flags, const Request& defaults, std::uint64_t seed);

}  // namespace lamplighter::cli

#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/line_stream.h"
#include "flags.h"
#include "lamplighter/error.h"
#include "lamplighter/options.h"
#include "prompt_lines.h"

namespace lamplighter::cli {

// One picture to draw, and where it goes.
struct Job {
  Request request;
  std::size_t index = 0;                          // its number in the run, from 0
  std::string output;                             // pattern
  std::string origin;                             // for messages: "prompt 2", "prompts.txt line 3"
  bool is_of_file = false, names_output = false;  // as PromptLine has them
  std::optional<LineMethod> method;
  std::optional<Error> failure;  // why it cannot be drawn; it keeps its number and its name
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

// Reads the pictures of a run. Picture i draws with seed + i; a line of a prompt file with a seed of its own
// counts from there. `defaults` holds what neither flags nor lines set.
class JobReader {
 public:
  // `streams`: prompts of standard input are handed on as they come.
  // Throws Error(ExitCode::usage).
  JobReader(const JobFlags& flags, const Request& defaults, std::uint64_t seed, bool streams);

  // The pictures of the run, or where they stream those of the lines that are there, once there are some;
  // none at the end. Throws Error (usage, input) where there are none at all.
  std::vector<Job> next();

 private:
  void add(const PromptLine& line, std::vector<Job>& jobs);
  void read_flags(std::vector<Job>& jobs);
  void read_file(std::vector<Job>& jobs);
  void read_stream(std::vector<Job>& jobs);

  JobFlags flags_;
  PromptLine pattern_;
  std::uint64_t seed_;
  std::optional<LineStream> stream_;
  bool begun_ = false;
  std::size_t pictures_ = 0, lines_ = 1;  // lines of the stream, counted from 1
};

// All pictures of a run. Throws the first failure, too.
std::vector<Job> make_jobs(const JobFlags& flags, const Request& defaults, std::uint64_t seed);

}  // namespace lamplighter::cli

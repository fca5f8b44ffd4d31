#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/line_stream.h"
#include "batch/plan.h"
#include "lamplighter/bundle.h"
#include "lamplighter/error.h"
#include "lamplighter/options.h"
#include "tools/flags.h"
#include "tools/prompt_lines.h"

namespace lamplighter::cli {

// Adds --select of a caption set.
CLI::Option* add_select(CLI::App& command, PlanOptions& plan);

// One image to generate, and where it goes.
struct Job {
  Request request;
  std::size_t index = 0;                          // in the run, from 0
  std::string output;                             // pattern
  std::string origin;                             // for messages: "prompt 2", "prompts.txt line 3"
  bool is_of_file = false, names_output = false;  // see PromptLine
  std::optional<LineMethod> method;
  std::optional<Error> failure;  // why it cannot be generated; its index and file name stay reserved
};

// Flags that describe the images of a run.
struct JobFlags {
  std::vector<std::string> prompts;
  std::string prompt_file;   // "-" = standard input
  std::string column;        // of the prompts in the file; empty: found by name
  std::string prompt_codes;  // file of codes that are prompts
  std::optional<std::int64_t> class_id;
  std::string seed = "42";
  std::string output = "output.png";
  int batch_count = 1;
  const char* count_flag = "--batch-count";  // which gave it
  SamplingFlags sampling;

  // The help of --prompt-file ends with what the command does with standard input, where that is special.
  void add(CLI::App& command, const std::string& of_standard_input = "");
  bool names_images() const;  // whether any flag says what to generate
  // Throws Error(usage) where prompts are codes and the bundle reads captions.
  void check(const Manifest& manifest) const;
};

// Reads the images of a run. Image i uses seed + i; the images of a prompt line with its own seed count from
// that seed. `defaults` holds the values that neither flags nor lines set.
class JobReader {
 public:
  // `streams`: next() returns prompts of standard input as they arrive.
  // Throws Error(ExitCode::usage).
  JobReader(const JobFlags& flags, const Request& defaults, std::uint64_t seed, bool streams);

  // Returns the images of the run. A streaming reader waits for lines and returns the images of the lines it
  // has read. Returns none at the end. Throws Error (usage, input) for a run without images.
  std::vector<Job> next();

 private:
  void add(const PromptLine& line, std::vector<Job>& jobs);
  void read_flags(std::vector<Job>& jobs);
  void read_file(std::vector<Job>& jobs);
  void read_codes_file(std::vector<Job>& jobs);
  void read_stream(std::vector<Job>& jobs);
  void read_text(std::string bytes, const std::string& name, const std::string& format,
                 std::vector<Job>& jobs);

  JobFlags flags_;
  PromptLine pattern_;
  std::uint64_t seed_;
  std::optional<LineStream> stream_;
  bool begun_ = false, has_content_ = false;  // has_content_: the stream has more than comments so far
  std::size_t images_ = 0, lines_ = 1;        // lines of the stream, counted from 1
};

// Reads all images of a run. Throws the first failure.
std::vector<Job> make_jobs(const JobFlags& flags, const Request& defaults, std::uint64_t seed);

}  // namespace lamplighter::cli

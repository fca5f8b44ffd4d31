#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "lamplighter/bundle.h"
#include "lamplighter/outputs.h"
#include "pipeline/metadata/metadata.h"
#include "tools/commands/continue_from.h"
#include "tools/flags.h"
#include "tools/output_flags.h"
#include "tools/requests.h"
#include "tools/terminal.h"

namespace lamplighter::cli {

struct GenerateFlags {
  ModelFlags model;
  JobFlags jobs;
  ContinueFlags continued;
  MethodFlags method;
  LogFlags logging;
  OutputFlags files;
  std::string params_from, config;
  std::size_t first_index = 0;
  bool overwrite = false, skip_existing = false, json = false, no_metadata = false;
};

// Which flags the command line sets, over the metadata of --params-from.
struct Given {
  bool seed, dtype, cache_dtype, output;
};

// What holds for the whole run; known before weights are loaded.
struct Settings {
  MethodOptions method;
  RuntimeOptions runtime;
  Recorded recorded;  // of --params-from
  Continued continued;
  std::uint64_t seed = 0;
  bool streams = false;  // images are generated as their prompts come
  std::string codes;     // of bundles without an image decoder: the file that takes the place of images
};

// What flags say, over the image of --params-from. Throws Error (usage, input).
Settings read_flags(const GenerateFlags& flags, const Given& given, Terminal& terminal);

// The file of --save-codes where the bundle has no image decoder, else nothing. Throws Error(usage) where
// files of images are asked for that there cannot be.
std::string codes_alone(const GenerateFlags& flags, const Given& given, const Manifest& manifest);

struct PlannedImage {
  Job job;
  OutputRequest output;
  std::string path;
};

// Images that are generated together; known before weights are loaded.
struct Plan {
  std::vector<PlannedImage> images;
  std::size_t total = 0;  // with those that are there
};

// Images that cannot be generated. They are reported as their prompts come, while others are generated.
class Failures {
 public:
  Failures(bool json, Terminal& terminal) : json_(json), terminal_(terminal) {}

  // Takes the failed ones out of `images`: all of the run or of some lines of a stream, without the `present`
  // ones whose files exist.
  void take(std::vector<PlannedImage>& images, std::size_t present);
  // Throws Error (some_failed; input where nothing was generated) where there were some.
  void finish() const;

 private:
  bool json_;
  Terminal& terminal_;
  std::size_t failed_ = 0, total_ = 0;
  std::string last_;
};

// Checks requests, method and outputs against the manifest; reads no weights. Throws Error (usage, input,
// bundle, output), the failure of a prompt where all prompts of the run fail.
Plan make_plan(const GenerateFlags& flags, const Settings& settings, const Manifest& manifest,
               std::vector<Job> jobs, Failures& failures);

}  // namespace lamplighter::cli

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "lamplighter/bundle.h"
#include "lamplighter/outputs.h"
#include "pipeline/requests/metadata.h"
#include "tools/flags.h"
#include "tools/output_flags.h"
#include "tools/requests.h"
#include "tools/terminal.h"

namespace lamplighter::cli {

struct GenerateFlags {
  ModelFlags model;
  JobFlags jobs;
  MethodFlags method;
  TalkFlags talk;
  OutputFlags files;
  std::string params_from, config;
  std::size_t first_index = 0;
  bool overwrite = false, skip_existing = false, json = false, no_metadata = false;
};

// Flags of the command line, where a picture's metadata would give another value.
struct Given {
  bool seed, dtype, cache_dtype;
};

// What holds for the whole run; known before weights are loaded.
struct Settings {
  MethodOptions method;
  RuntimeOptions runtime;
  Recorded recorded;  // of --params-from
  std::uint64_t seed = 0;
  bool streams = false;  // pictures are drawn as their prompts come
};

// What flags say, over the picture of --params-from. Throws Error (usage, input).
Settings read_flags(const GenerateFlags& flags, const Given& given, Terminal& terminal);

struct Picture {
  Job job;
  OutputRequest output;
  std::string path;
};

// Pictures that are drawn together; known before weights are loaded.
struct Plan {
  std::vector<Picture> pictures;
  std::size_t total = 0;  // with those that are there
};

// Pictures that cannot be drawn: told of as their prompts come, while others are drawn.
class Failures {
 public:
  Failures(bool json, Terminal& terminal) : json_(json), terminal_(terminal) {}

  // Takes them out of `pictures`, which are all of the run or of some lines of a stream, but for those that
  // are there: `present` of them.
  void take(std::vector<Picture>& pictures, std::size_t present);
  // Throws Error (some_failed; input where nothing was drawn) where there were some.
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

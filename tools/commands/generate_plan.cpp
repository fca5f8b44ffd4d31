#include "generate_plan.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <utility>

#include "base/json.h"
#include "base/utf8.h"
#include "lamplighter/error.h"
#include "lamplighter/method.h"
#include "lamplighter/pipeline.h"
#include "propose/options/options.h"
#include "tree/tree.h"

namespace lamplighter::cli {
namespace {

// Which files are read is for flags alone to say: pictures come from strangers.
void check_files(const GenerateFlags& flags, const MethodOptions& method) {
  const auto refuse = [&](const char* flag, const std::string& path) {
    throw Error(ExitCode::input, flags.params_from + ": was drawn with the file " + shorten(path, 200) +
                                     ", which a picture cannot choose; give " + flag + " FILE");
  };
  if (flags.method.options.tree.empty() && is_tree_file(method.tree)) refuse("--tree", method.tree);
  if (flags.method.options.neighbours.empty() && !method.neighbours.empty())
    refuse("--neighbours", method.neighbours);
}

// Of a file of prompts; what flags say wrong concerns all.
bool is_from_file(const Job& job) {
  return job.origin.rfind("prompt", 0) != 0 || job.origin.find(" line ") != std::string::npos;
}

// Sets the method of a job and checks all that it asks for.
void check_job(const Manifest& manifest, const Settings& settings, Job& job) {
  if (job.failure) return;
  if (job.method) job.request.method = merge_methods(settings.method, job.method->options, job.method->named);
  try {
    TextToImage::check(manifest, job.request);
  } catch (const Error& error) {
    if (!is_from_file(job)) throw;
    job.failure = Error(ExitCode::input, job.origin + ": " + error.what());
  }
}

bool has_failed(const Picture& picture) {
  return picture.job.failure.has_value();
}

void leave_out(std::vector<Picture>& pictures, const std::function<bool(const Picture&)>& out) {
  pictures.erase(std::remove_if(pictures.begin(), pictures.end(), out), pictures.end());
}

// The pictures of jobs, and the largest extent that one of them has.
std::vector<Picture> make_pictures(const GenerateFlags& flags, const Settings& settings,
                                   const Manifest& manifest, std::vector<Job> jobs, Extent& largest) {
  std::vector<Picture> pictures;
  std::vector<OutputRequest> outputs;
  for (Job& job : jobs) {
    check_job(manifest, settings, job);
    outputs.push_back({job.output, flags.first_index + job.index, job.request.seed, job.request.prompt});
    if (!job.failure) {
      const Grid& grid = find_grid(manifest, job.request.width, job.request.height);
      largest = {std::max<std::int64_t>(largest.width, grid.width),
                 std::max<std::int64_t>(largest.height, grid.height)};
    }
    pictures.push_back({std::move(job), outputs.back(), ""});
  }
  const std::vector<std::string> paths = expand_outputs(outputs);
  for (std::size_t i = 0; i < paths.size(); ++i) pictures[i].path = paths[i];
  return pictures;
}

// Standard output takes the picture or words about it.
void check_standard_output(const GenerateFlags& flags, const std::vector<Picture>& pictures) {
  const auto is_standard = [](const Picture& picture) { return picture.path == "-"; };
  if (std::none_of(pictures.begin(), pictures.end(), is_standard)) return;
  if (flags.json)
    throw Error(ExitCode::usage, "--output: got '-' with --json, expected one of them: both print");
  if (::isatty(STDOUT_FILENO) == 1)
    throw Error(ExitCode::usage, "--output: got '-' on a terminal, expected a file or a pipe behind it");
}

void prepare_files(const GenerateFlags& flags, const std::vector<Picture>& pictures) {
  std::vector<OutputRequest> outputs;
  std::vector<std::string> paths;
  for (const Picture& picture : pictures) {
    outputs.push_back(picture.output);
    paths.push_back(picture.path);
  }
  for (const std::string& path : flags.files.paths()) paths.push_back(path);
  check_distinct(paths);
  prepare_outputs(outputs, paths, flags.overwrite);
}

}  // namespace

Settings read_flags(const GenerateFlags& flags, const Given& given, Terminal& terminal) {
  Settings settings;
  const bool recorded = !flags.params_from.empty();
  if (recorded) settings.recorded = read_recorded(flags.params_from);
  const bool own_seed = given.seed || !recorded;
  settings.seed = own_seed ? parse_seed(flags.jobs.seed) : settings.recorded.request.seed;
  if (own_seed && flags.jobs.seed == "-1") terminal.say("seed " + std::to_string(settings.seed));
  settings.method = flags.method.over(settings.recorded.method);
  if (recorded) check_files(flags, settings.method);
  settings.runtime = flags.model.options();
  if (recorded && !given.dtype) settings.runtime.dtype = settings.recorded.dtype;
  if (recorded && !given.cache_dtype) settings.runtime.cache_dtype = settings.recorded.cache_dtype;
  // Names and files that tell how many pictures there are wait for the last prompt.
  settings.streams =
      flags.jobs.prompt_file == "-" && is_numbered(flags.jobs.output) && flags.files.paths().empty();
  return settings;
}

void Failures::take(std::vector<Picture>& pictures) {
  for (const Picture& picture : pictures) {
    if (!has_failed(picture)) continue;
    ++failed_;
    const std::string message = picture.job.failure->what();
    if (json_) terminal_.result(to_text({{"index", picture.job.index}, {"error", message}}));
    if (message != last_) terminal_.complain(message);  // once for all pictures of a line
    last_ = message;
  }
  total_ += pictures.size();
  leave_out(pictures, has_failed);
}

void Failures::finish() const {
  if (failed_ == 0) return;
  throw Error(failed_ < total_ ? ExitCode::some_failed : ExitCode::input,
              std::to_string(failed_) + " of " + std::to_string(total_) +
                  " pictures could not be drawn, for the reasons above");
}

Plan make_plan(const GenerateFlags& flags, const Settings& settings, const Manifest& manifest,
               std::vector<Job> jobs, Failures& failures) {
  Plan plan;
  Extent largest;
  flags.files.check_tokens(manifest);
  plan.pictures = make_pictures(flags, settings, manifest, std::move(jobs), largest);
  resolve_method(settings.method, manifest);
  if (!settings.streams && std::all_of(plan.pictures.begin(), plan.pictures.end(), has_failed))
    throw Error(*plan.pictures.front().job.failure);
  failures.take(plan.pictures);
  plan.total = plan.pictures.size();
  flags.files.check_room(static_cast<std::int64_t>(plan.total), largest);
  check_standard_output(flags, plan.pictures);
  if (flags.skip_existing) {
    leave_out(plan.pictures, [](const Picture& picture) {
      std::error_code ignored;
      return std::filesystem::exists(picture.path, ignored);
    });
  }
  prepare_files(flags, plan.pictures);
  return plan;
}

}  // namespace lamplighter::cli

#include "generate_plan.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <utility>

#include "base/json.h"
#include "lamplighter/error.h"
#include "lamplighter/method.h"
#include "lamplighter/pipeline.h"
#include "params_from.h"
#include "propose/options/options.h"

namespace lamplighter::cli {
namespace {

// What is wrong with a line of a file concerns that line, what is wrong with flags concerns all.
template <class Check>
void check_line(Job& job, const Check& check) {
  try {
    check();
  } catch (const Error& error) {
    if (!job.is_of_file) throw;
    if (!job.failure) job.failure = Error(ExitCode::input, job.origin + ": " + error.what());
  }
}

// Sets the method of a job and checks all that it asks for.
void check_job(const Manifest& manifest, const Settings& settings, Job& job) {
  if (job.failure) return;
  if (job.method) job.request.method = merge_methods(settings.method, job.method->options, job.method->named);
  check_line(job, [&] { TextToImage::check(manifest, job.request); });
}

bool has_failed(const Picture& picture) {
  return picture.job.failure.has_value();
}

void leave_out(std::vector<Picture>& pictures, const std::function<bool(const Picture&)>& out) {
  pictures.erase(std::remove_if(pictures.begin(), pictures.end(), out), pictures.end());
}

std::size_t count_drawable(const std::vector<Picture>& pictures) {
  return pictures.size() -
         static_cast<std::size_t>(std::count_if(pictures.begin(), pictures.end(), has_failed));
}

// Standard output takes the picture or words about it.
void check_standard_output(const GenerateFlags& flags, const std::string& path) {
  if (path != "-") return;
  if (flags.json)
    throw Error(ExitCode::usage, "--output: got '-' with --json, expected one of them: both print");
  if (::isatty(STDOUT_FILENO) == 1)
    throw Error(ExitCode::usage, "--output: got '-' on a terminal, expected a file or a pipe behind it");
}

// Whether the output that a line names can be a picture's. Lines that failed keep theirs, too: the others
// have the names that they would have beside them.
bool check_own_output(const GenerateFlags& flags, const OutputRequest& output, std::size_t pictures,
                      Job& job) {
  bool is_good = false;
  check_line(job, [&] {
    if (output.pattern == "-" && pictures > 1)
      throw Error(ExitCode::usage, "output: got '-', expected one picture for standard output");
    check_standard_output(flags, expand_outputs({output}).front());
    is_good = true;
  });
  return is_good;
}

// The pictures of jobs, and the largest extent that one of them has.
std::vector<Picture> make_pictures(const GenerateFlags& flags, const Settings& settings,
                                   const Manifest& manifest, std::vector<Job> jobs, Extent& largest) {
  std::vector<Picture> pictures;
  std::vector<OutputRequest> outputs;
  std::vector<std::size_t> named;  // whose outputs those are
  for (Job& job : jobs) {
    check_job(manifest, settings, job);
    const OutputRequest output{job.output, flags.first_index + job.index, job.request.seed,
                               job.request.prompt};
    if (!job.names_output || check_own_output(flags, output, jobs.size(), job)) {
      outputs.push_back(output);
      named.push_back(pictures.size());
    }
    if (!job.failure) {
      const Grid& grid = find_grid(manifest, job.request.width, job.request.height);
      largest = {std::max<std::int64_t>(largest.width, grid.width),
                 std::max<std::int64_t>(largest.height, grid.height)};
    }
    pictures.push_back({std::move(job), output, ""});
  }
  const std::vector<std::string> paths = expand_outputs(outputs);
  for (std::size_t i = 0; i < paths.size(); ++i) pictures[named[i]].path = paths[i];
  return pictures;
}

// Makes the folders of pictures and sees that their files can be written.
void prepare_files(const GenerateFlags& flags, std::vector<Picture>& pictures) {
  std::vector<OutputRequest> outputs;
  std::vector<std::string> paths, all;
  for (const Picture& picture : pictures) {
    if (has_failed(picture)) continue;
    all.push_back(picture.path);
    if (picture.job.names_output) continue;
    outputs.push_back(picture.output);
    paths.push_back(picture.path);
  }
  for (const std::string& path : flags.files.paths()) {
    paths.push_back(path);
    all.push_back(path);
  }
  check_distinct(all);
  prepare_outputs(outputs, paths, flags.overwrite);
  for (Picture& picture : pictures) {
    if (has_failed(picture) || !picture.job.names_output) continue;
    check_line(picture.job, [&] { prepare_outputs({picture.output}, {picture.path}, flags.overwrite); });
  }
}

// The first failure is the run's where all fail.
void require_some(const Settings& settings, const std::vector<Picture>& pictures) {
  if (!settings.streams && !pictures.empty() && count_drawable(pictures) == 0)
    throw Error(*pictures.front().job.failure);
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
  if (recorded) check_files(flags.params_from, settings.method, flags.method.options);
  settings.runtime = flags.model.options();
  if (recorded && !given.dtype) settings.runtime.dtype = settings.recorded.dtype;
  if (recorded && !given.cache_dtype) settings.runtime.cache_dtype = settings.recorded.cache_dtype;
  // Names and files that tell how many pictures there are wait for the last prompt.
  settings.streams =
      flags.jobs.prompt_file == "-" && is_numbered(flags.jobs.output) && flags.files.paths().empty();
  return settings;
}

void Failures::take(std::vector<Picture>& pictures, std::size_t present) {
  total_ += pictures.size() + present;
  for (const Picture& picture : pictures) {
    if (!has_failed(picture)) continue;
    ++failed_;
    const std::string message = picture.job.failure->what();
    if (json_) terminal_.result(to_text({{"index", picture.job.index}, {"error", message}}));
    if (message != last_) terminal_.complain(message);  // once for all pictures of a line
    last_ = message;
  }
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
  require_some(settings, plan.pictures);
  flags.files.check_room(static_cast<std::int64_t>(count_drawable(plan.pictures)), largest);
  for (const Picture& picture : plan.pictures) {
    if (!has_failed(picture)) check_standard_output(flags, picture.path);
  }
  const std::size_t wanted = plan.pictures.size();
  if (flags.skip_existing) {
    leave_out(plan.pictures, [](const Picture& picture) {
      std::error_code ignored;
      return !has_failed(picture) && std::filesystem::exists(picture.path, ignored);
    });
  }
  const std::size_t present = wanted - plan.pictures.size();
  prepare_files(flags, plan.pictures);
  if (present == 0) require_some(settings, plan.pictures);
  failures.take(plan.pictures, present);
  plan.total = plan.pictures.size() + present;
  return plan;
}

}  // namespace lamplighter::cli

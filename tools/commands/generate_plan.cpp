#include "tools/commands/generate_plan.h"
#include "base/format.h"
#include "base/message.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <utility>

#include "base/json.h"
#include "draft/options/options.h"
#include "lamplighter/error.h"
#include "lamplighter/method.h"
#include "lamplighter/pipeline.h"
#include "tools/commands/params_from.h"

namespace lamplighter::cli {
namespace {

// An error in a line of a file fails that line; an error in a flag fails the run.
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
  check_line(job, [&] { settings.continued.apply(manifest, job.request); });
  if (job.failure) return;
  if (job.method) job.request.method = merge_methods(settings.method, job.method->options, job.method->named);
  check_line(job, [&] { TextToImage::check(manifest, job.request); });
}

bool has_failed(const PlannedImage& image) {
  return image.job.failure.has_value();
}

void leave_out(std::vector<PlannedImage>& images, const std::function<bool(const PlannedImage&)>& out) {
  images.erase(std::remove_if(images.begin(), images.end(), out), images.end());
}

std::size_t count_generatable(const std::vector<PlannedImage>& images) {
  return images.size() - static_cast<std::size_t>(std::count_if(images.begin(), images.end(), has_failed));
}

void check_standard_output(const GenerateFlags& flags, const std::string& path) {
  if (path != "-") return;
  if (flags.json)
    throw Error(ExitCode::usage, "--output - and --json cannot be combined: both write to stdout");
  if (::isatty(STDOUT_FILENO) == 1)
    throw Error(ExitCode::usage, "--output: got '-' on a terminal, expected a file or a pipe behind it");
}

// Checks the output that a line names. A line that failed keeps its output, so that the names of the others
// do not depend on it.
bool check_own_output(const GenerateFlags& flags, const OutputRequest& output, std::size_t images, Job& job) {
  bool is_good = false;
  check_line(job, [&] {
    if (output.pattern == "-" && images > 1)
      throw Error(ExitCode::usage, "output: got '-', expected one image for standard output");
    check_standard_output(flags, expand_outputs({output}).front());
    is_good = true;
  });
  return is_good;
}

// Throws Error(usage) where a line names a file for an image that has codes alone.
void refuse_own_output(const Manifest& manifest, const Job& job) {
  if (job.names_output)
    throw Error(ExitCode::usage, "output: got " + quote(job.output) + ", expected none: bundle " +
                                     manifest.name + " has no image decoder, it generates codes");
}

// Makes the images of jobs; `largest` becomes the largest extent of one.
std::vector<PlannedImage> make_images(const GenerateFlags& flags, const Settings& settings,
                                      const Manifest& manifest, std::vector<Job> jobs, Extent& largest) {
  std::vector<PlannedImage> images;
  std::vector<OutputRequest> outputs;
  std::vector<std::size_t> named;  // whose outputs those are
  for (Job& job : jobs) {
    check_job(manifest, settings, job);
    const OutputRequest output{job.output, flags.first_index + job.index, job.request.seed,
                               job.request.prompt};
    if (!settings.codes.empty()) {
      check_line(job, [&] { refuse_own_output(manifest, job); });
    } else if (!job.names_output || check_own_output(flags, output, jobs.size(), job)) {
      outputs.push_back(output);
      named.push_back(images.size());
    }
    if (!job.failure) {
      const Grid& grid = find_grid(manifest, job.request.width, job.request.height);
      largest = {std::max<std::int64_t>(largest.width, grid.width),
                 std::max<std::int64_t>(largest.height, grid.height)};
    }
    images.push_back({std::move(job), output, settings.codes});
  }
  const std::vector<std::string> paths = expand_outputs(outputs);
  for (std::size_t i = 0; i < paths.size(); ++i) images[named[i]].path = paths[i];
  return images;
}

// Makes the folders of images and checks that their files can be written.
void prepare_files(const GenerateFlags& flags, const Settings& settings, std::vector<PlannedImage>& images) {
  std::vector<OutputRequest> outputs;
  std::vector<std::string> paths, all;
  for (const PlannedImage& image : images) {
    if (has_failed(image) || !settings.codes.empty()) continue;
    all.push_back(image.path);
    if (image.job.names_output) continue;
    outputs.push_back(image.output);
    paths.push_back(image.path);
  }
  for (const std::string& path : flags.files.paths()) {
    paths.push_back(path);
    all.push_back(path);
  }
  check_distinct(all);
  prepare_outputs(outputs, paths, flags.overwrite);
  for (PlannedImage& image : images) {
    if (has_failed(image) || !image.job.names_output || !settings.codes.empty()) continue;
    check_line(image.job, [&] { prepare_outputs({image.output}, {image.path}, flags.overwrite); });
  }
}

// Throws the first failure where all images fail.
void require_some(const Settings& settings, const std::vector<PlannedImage>& images) {
  if (!settings.streams && !images.empty() && count_generatable(images) == 0)
    throw Error(*images.front().job.failure);
}

}  // namespace

Settings read_flags(const GenerateFlags& flags, const Given& given, Terminal& terminal) {
  Settings settings;
  const bool recorded = !flags.params_from.empty();
  if (recorded) settings.recorded = read_recorded(flags.params_from);
  const bool own_seed = given.seed || !recorded;
  settings.seed = own_seed ? parse_seed(flags.jobs.seed) : settings.recorded.request.seed;
  if (own_seed && flags.jobs.seed == "-1") terminal.log("seed " + std::to_string(settings.seed));
  settings.method = flags.method.over(settings.recorded.method);
  if (recorded) check_files(flags.params_from, settings.method, flags.method.options);
  settings.continued = read_continued(flags.continued, flags.params_from, settings.recorded);
  settings.runtime = flags.model.options();
  settings.runtime.record_drafts = flags.files.show_drafts();
  if (recorded && !given.dtype) settings.runtime.dtype = settings.recorded.dtype;
  if (recorded && !given.cache_dtype) settings.runtime.cache_dtype = settings.recorded.cache_dtype;
  // Names and files that depend on the number of images need all prompts.
  settings.streams =
      flags.jobs.prompt_file == "-" && is_numbered(flags.jobs.output) && flags.files.paths().empty();
  return settings;
}

std::string codes_alone(const GenerateFlags& flags, const Given& given, const Manifest& manifest) {
  if (manifest.has("image_decoder")) return "";
  const auto refuse = [&](const std::string& flag, const std::string& got, const std::string& expected) {
    throw Error(ExitCode::usage, flag + ": got " + got + ", expected " + expected + ": bundle " +
                                     manifest.name + " has no image decoder, it generates codes");
  };
  if (given.output) refuse("--output", quote(flags.jobs.output), "none");
  if (flags.skip_existing) refuse("--skip-existing", "it", "it to be left out");
  const std::string codes = flags.files.codes_alone(manifest);
  if (codes.empty()) refuse("--save-codes", "none", "a file");
  return codes;
}

void Failures::take(std::vector<PlannedImage>& images, std::size_t present) {
  total_ += images.size() + present;
  for (const PlannedImage& image : images) {
    if (!has_failed(image)) continue;
    ++failed_;
    const std::string message = image.job.failure->what();
    if (json_) terminal_.result(to_text({{"index", image.job.index}, {"error", message}}));
    if (message != last_) terminal_.complain(message);  // once for all images of a line
    last_ = message;
  }
  leave_out(images, has_failed);
}

void Failures::finish() const {
  if (failed_ == 0) return;
  throw Error(failed_ < total_ ? ExitCode::some_failed : ExitCode::input,
              std::to_string(failed_) + " of " + counted(total_, "image") +
                  " could not be generated, for the reasons above");
}

Plan make_plan(const GenerateFlags& flags, const Settings& settings, const Manifest& manifest,
               std::vector<Job> jobs, Failures& failures) {
  Plan plan;
  Extent largest;
  flags.files.check_tokens(manifest);
  plan.images = make_images(flags, settings, manifest, std::move(jobs), largest);
  resolve_method(settings.method, manifest);
  require_some(settings, plan.images);
  flags.files.check_room(static_cast<std::int64_t>(count_generatable(plan.images)), largest);
  for (const PlannedImage& image : plan.images) {
    if (!has_failed(image) && settings.codes.empty()) check_standard_output(flags, image.path);
  }
  const std::size_t wanted = plan.images.size();
  if (flags.skip_existing) {
    leave_out(plan.images, [](const PlannedImage& image) {
      std::error_code ignored;
      return !has_failed(image) && std::filesystem::exists(image.path, ignored);
    });
  }
  const std::size_t present = wanted - plan.images.size();
  prepare_files(flags, settings, plan.images);
  if (present == 0) require_some(settings, plan.images);
  failures.take(plan.images, present);
  plan.total = plan.images.size() + present;
  return plan;
}

}  // namespace lamplighter::cli

#include "tools/requests.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/files.h"
#include "base/message.h"
#include "base/suggestion.h"
#include "batch/captions/captions.h"
#include "pipeline/output/codes_file.h"
#include "text/code_list.h"
#include "tools/help.h"

namespace lamplighter::cli {
namespace {

constexpr std::size_t kMaxImages = 1'000'000;

}  // namespace

CLI::Option* add_select(CLI::App& command, PlanOptions& plan) {
  CLI::Option* flag = command.add_option(
      "--select", plan.select, "Which captions of an image: " + list_of(select_rules()) + " or random:SEED");
  return with_choices(command, flag->type_name("RULE")->capture_default_str(), select_rules());
}

void JobFlags::add(CLI::App& command, const std::string& of_standard_input) {
  begin_group(command, "Captions");
  common(command, command.add_option("-p,--prompt", prompts, "Caption; may be given several times"))
      ->allow_extra_args(false)
      ->type_name("TEXT");
  common(command,
         command.add_option(
             "--prompt-file", prompt_file,
             "Captions: one per line (# starts a comment), JSON lines with fields, JSON, CSV or TSV; - = "
             "standard input" +
                 of_standard_input))
      ->type_name("FILE");
  command.add_option("--column", column, "Column or key of the captions in --prompt-file")
      ->type_name("NAME")
      ->default_str("prompt, caption, text, ...");
  command
      .add_option("--prompt-codes", prompt_codes,
                  "Prompts of bundles that make images of another bundle's codes: the file that generate "
                  "--save-codes wrote there")
      ->type_name("FILE");
  command.add_option("--class", class_id, "Class to generate, for class-conditional bundles")->type_name("N");
  common(command, command.add_option("-s,--seed", seed, "Image i uses seed + i; -1 = random"))
      ->type_name("N")
      ->capture_default_str();
  common(command, command.add_option("-b,--batch-count", batch_count, "Images per caption"))
      ->type_name("N")
      ->capture_default_str();
  begin_group(command, "Output");
  common(command,
         command.add_option("-o,--output", output,
                            "File (.png, .jpg, .webp), pattern with %04d, {index}, {seed}, {prompt}, "
                            "or folder; - = standard output"))
      ->type_name("PATTERN")
      ->capture_default_str();
  sampling.add(command);
}

bool JobFlags::names_images() const {
  return !prompts.empty() || !prompt_file.empty() || !prompt_codes.empty() || class_id;
}

void JobFlags::check(const Manifest& manifest) const {
  if (prompt_codes.empty() || (manifest.tokenizer && manifest.tokenizer->kind == "codes")) return;
  throw Error(ExitCode::usage, "--prompt-codes: got " + quote(prompt_codes) + ", expected none: bundle " +
                                   manifest.name + " does not read codes");
}

JobReader::JobReader(const JobFlags& flags, const Request& defaults, std::uint64_t seed, bool streams)
    : flags_(flags), seed_(seed) {
  if (flags.batch_count < 1) {
    throw Error(ExitCode::usage, std::string(flags.count_flag) + ": got " +
                                     std::to_string(flags.batch_count) + ", expected 1 or more");
  }
  pattern_.request = defaults;
  pattern_.output = flags.output;
  pattern_.count = flags.batch_count;
  pattern_.origin = "prompt";
  flags.sampling.apply(pattern_.request);
  if (flags.class_id) {
    pattern_.request.class_id = flags.class_id;
    pattern_.request.prompt.clear();
  }
  if (streams) stream_.emplace();
}

std::vector<Job> JobReader::next() {
  std::vector<Job> jobs;
  if (!begun_) {
    read_flags(jobs);
    if (!flags_.prompt_file.empty() && !stream_) read_file(jobs);
  }
  if (stream_ && jobs.empty()) read_stream(jobs);
  const bool generatable = pattern_.request.class_id || !pattern_.request.prompt.empty();
  if (!begun_ && jobs.empty() && generatable) add(pattern_, jobs);
  if (!begun_ && jobs.empty())
    throw Error(ExitCode::usage, "nothing to generate: give --prompt TEXT, --prompt-file FILE or --class N");
  begun_ = true;
  return jobs;
}

void JobReader::read_flags(std::vector<Job>& jobs) {
  PromptLine pattern = pattern_;
  if (!flags_.class_id) pattern.request.class_id.reset();  // set by --params-from
  std::size_t number = 0;
  for (const std::string& prompt : flags_.prompts)
    add(caption_line(pattern, prompt, "prompt " + std::to_string(++number)), jobs);
  if (!flags_.prompt_codes.empty()) read_codes_file(jobs);
}

void JobReader::read_codes_file(std::vector<Job>& jobs) {
  const std::string& file = flags_.prompt_codes;
  const std::vector<SavedCodes> images = read_codes(file);
  for (std::size_t i = 0; i < images.size(); ++i)
    add(caption_line(pattern_, code_list(images[i].codes.ids), file + " image " + std::to_string(i)), jobs);
}

void JobReader::read_file(std::vector<Job>& jobs) {
  const std::string name = flags_.prompt_file == "-" ? "standard input" : flags_.prompt_file;
  read_text(read_input(flags_.prompt_file), name, "auto", jobs);
}

// Reads a whole source.
void JobReader::read_text(std::string bytes, const std::string& name, const std::string& format,
                          std::vector<Job>& jobs) {
  captions::SourceOptions options;
  options.format = format;
  options.column = flags_.column;
  options.says_element = true;
  options.first_line = lines_;
  const std::size_t found = jobs.size();
  const std::string text = lines_ == 1 ? captions::decode_text(std::move(bytes), name) : std::move(bytes);
  read_prompts(text, name, options, pattern_, [&](const PromptLine& line) { add(line, jobs); });
  if (jobs.size() == found && format == "auto") throw Error(ExitCode::input, name + ": no prompts found");
}

// Lines are read as they arrive; other content is read when it has ended.
void JobReader::read_stream(std::vector<Job>& jobs) {
  const std::string name = "standard input";
  while (jobs.empty()) {
    std::string bytes = stream_->take();
    if (bytes.empty()) break;
    if (!has_content_) {
      const std::optional<bool> has_lines = captions::is_line_stream(bytes);
      if (has_lines && (!*has_lines || !flags_.column.empty()))
        return read_text(bytes + stream_->take_rest(), name, "auto", jobs);
      has_content_ = has_lines.has_value();
    }
    const auto lines = static_cast<std::size_t>(std::count(bytes.begin(), bytes.end(), '\n'));
    read_text(std::move(bytes), name, "lines", jobs);
    lines_ += lines;
  }
  if (jobs.empty() && images_ == 0) throw Error(ExitCode::input, name + ": no prompts found");
}

void JobReader::add(const PromptLine& line, std::vector<Job>& jobs) {
  const auto count = static_cast<std::size_t>(line.count);
  if (count > kMaxImages - std::min(jobs.size(), kMaxImages)) {
    throw Error(ExitCode::usage, line.origin + ": got image number " + std::to_string(jobs.size() + count) +
                                     ", expected at most " + std::to_string(kMaxImages) + " in all; see " +
                                     flags_.count_flag);
  }
  for (std::size_t copy = 0; copy < count; ++copy) {
    Job job{line.request,    images_,           line.output, line.origin,
            line.is_of_file, line.names_output, line.method, line.failure};
    job.request.seed = line.seed ? *line.seed + copy : seed_ + images_;
    ++images_;
    jobs.push_back(std::move(job));
  }
}

std::vector<Job> make_jobs(const JobFlags& flags, const Request& defaults, std::uint64_t seed) {
  std::vector<Job> jobs = JobReader(flags, defaults, seed, false).next();
  for (const Job& job : jobs) {
    if (job.failure) throw *job.failure;
    if (job.method)
      throw Error(ExitCode::usage,
                  job.origin + ": got a method, expected none: flags choose what is measured");
  }
  return jobs;
}

}  // namespace lamplighter::cli

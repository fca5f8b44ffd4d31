#include "requests.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/files.h"
#include "base/lines.h"
#include "help.h"

namespace lamplighter::cli {
namespace {

constexpr std::size_t kMaxPictures = 1'000'000;

}  // namespace

void JobFlags::add(CLI::App& command) {
  begin_group(command, "Captions");
  command.add_option("-p,--prompt", prompts, "Caption; may be given several times")
      ->allow_extra_args(false)
      ->type_name("TEXT");
  command
      .add_option("--prompt-file", prompt_file,
                  "One prompt a line, JSON lines with fields, or a JSON array; # begins a comment; - = "
                  "standard input, drawn as it comes where --output numbers the pictures")
      ->type_name("FILE");
  command.add_option("--class", class_id, "Class to draw (class-conditional bundles)")->type_name("N");
  command.add_option("-s,--seed", seed, "Picture i draws with seed + i; -1 = random (default: 42)")
      ->type_name("N");
  command.add_option("-b,--batch-count", batch_count, "Pictures per prompt")->type_name("N");
  begin_group(command, "Output");
  command
      .add_option("-o,--output", output,
                  "File (.png, .jpg, .webp), pattern with %04d, {index}, {seed}, {prompt}, or folder; - = "
                  "standard output "
                  "(default: output.png)")
      ->type_name("PATTERN");
  sampling.add(command);
}

JobReader::JobReader(const JobFlags& flags, const Request& defaults, std::uint64_t seed, bool streams)
    : flags_(flags), seed_(seed) {
  if (flags.batch_count < 1) {
    throw Error(ExitCode::usage,
                "--batch-count: got " + std::to_string(flags.batch_count) + ", expected 1 or more");
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
  const bool drawable = pattern_.request.class_id || !pattern_.request.prompt.empty();
  if (!begun_ && jobs.empty() && drawable) add(pattern_, jobs);
  if (!begun_ && jobs.empty())
    throw Error(ExitCode::usage, "nothing to draw: give --prompt TEXT, --prompt-file FILE or --class N");
  begun_ = true;
  return jobs;
}

void JobReader::read_flags(std::vector<Job>& jobs) {
  PromptLine pattern = pattern_;
  if (!flags_.class_id) pattern.request.class_id.reset();  // of --params-from
  std::size_t number = 0;
  for (const std::string& prompt : flags_.prompts)
    add(caption_line(pattern, prompt, "prompt " + std::to_string(++number)), jobs);
}

void JobReader::read_file(std::vector<Job>& jobs) {
  const std::string bytes = read_input(flags_.prompt_file);
  const std::string name = flags_.prompt_file == "-" ? "standard input" : flags_.prompt_file;
  const std::size_t found = jobs.size();
  read_prompts(without_mark(bytes), name, 1, pattern_, [&](const PromptLine& line) { add(line, jobs); });
  if (jobs.size() == found) throw Error(ExitCode::input, name + ": no prompts found");
}

void JobReader::read_stream(std::vector<Job>& jobs) {
  while (jobs.empty()) {
    std::string bytes = stream_->take();
    if (bytes.empty()) break;
    std::string_view text = lines_ == 1 ? without_mark(bytes) : bytes;
    if (lines_ == 1 && begins_array(text)) {
      bytes += stream_->take_rest();
      text = without_mark(bytes);
    }
    const std::string name = "standard input";
    read_prompts(text, name, lines_, pattern_, [&](const PromptLine& line) { add(line, jobs); });
    lines_ += static_cast<std::size_t>(std::count(bytes.begin(), bytes.end(), '\n'));
  }
  if (jobs.empty() && pictures_ == 0) throw Error(ExitCode::input, "standard input: no prompts found");
}

void JobReader::add(const PromptLine& line, std::vector<Job>& jobs) {
  const auto count = static_cast<std::size_t>(line.count);
  if (count > kMaxPictures - std::min(jobs.size(), kMaxPictures)) {
    throw Error(ExitCode::usage, line.origin + ": got picture number " + std::to_string(jobs.size() + count) +
                                     ", expected at most " + std::to_string(kMaxPictures) +
                                     " in all; see --batch-count");
  }
  for (std::size_t copy = 0; copy < count; ++copy) {
    Job job{line.request,    pictures_,         line.output, line.origin,
            line.is_of_file, line.names_output, line.method, line.failure};
    job.request.seed = line.seed ? *line.seed + copy : seed_ + pictures_;
    ++pictures_;
    jobs.push_back(std::move(job));
  }
}

std::vector<Job> make_jobs(const JobFlags& flags, const Request& defaults, std::uint64_t seed) {
  std::vector<Job> jobs = JobReader(flags, defaults, seed, false).next();
  for (const Job& job : jobs) {
    if (job.failure) throw *job.failure;
    if (job.method)
      throw Error(ExitCode::usage, job.origin + ": got a method, expected none: flags say what is measured");
  }
  return jobs;
}

}  // namespace lamplighter::cli

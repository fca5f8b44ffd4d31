#include "requests.h"

#include <string_view>
#include <utility>

#include "base/files.h"
#include "base/json.h"
#include "base/lines.h"
#include "lamplighter/error.h"
#include "pipeline/request_fields.h"

namespace lamplighter::cli {
namespace {

constexpr std::size_t kMaxPictures = 1'000'000;

// One prompt, before it is multiplied by --batch-count.
struct Line {
  Request request;
  std::optional<std::uint64_t> seed;
  std::string output, origin;
};

// Lines of a prompt file: plain prompts, or JSON objects where "{" comes first. Blank lines are
// skipped.
void read_prompt_file(const std::string& path, const Line& pattern, std::vector<Line>& lines) {
  const std::string text = read_input(path);
  const std::string name = path == "-" ? "standard input" : path;
  const std::size_t found = lines.size();
  for_each_line(without_mark(text), [&](std::string_view content, std::size_t number) {
    Line line = pattern;
    line.origin = name + " line " + std::to_string(number);
    if (content[content.find_first_not_of(" \t")] == '{') {
      const Json json = parse_json(content, line.origin, ExitCode::input);
      JsonReader record(json, line.origin, ExitCode::input);
      if (record.has("output")) line.output = record.text("output");
      if (const auto seed = read_request_fields(record, line.request)) line.seed = seed;
      record.finish();
    } else {
      line.request.prompt = content;
      line.request.class_id.reset();
    }
    if (!line.request.class_id) check_prompt(line.request.prompt, line.origin);
    lines.push_back(std::move(line));
  });
  if (lines.size() == found) throw Error(ExitCode::input, name + ": no prompts found");
}

std::vector<Line> read_lines(const JobFlags& flags, const Request& defaults) {
  Line pattern{defaults, std::nullopt, flags.output, "prompt"};
  flags.sampling.apply(pattern.request);
  if (flags.class_id) {
    pattern.request.class_id = flags.class_id;
    pattern.request.prompt.clear();
  }
  std::vector<Line> lines;
  for (const std::string& prompt : flags.prompts) {
    lines.push_back(pattern);
    lines.back().request.prompt = prompt;
    if (!flags.class_id) lines.back().request.class_id.reset();  // of --params-from
    lines.back().origin = "prompt " + std::to_string(lines.size());
    check_prompt(prompt, lines.back().origin);
  }
  if (!flags.prompt_file.empty()) read_prompt_file(flags.prompt_file, pattern, lines);
  const bool drawable = pattern.request.class_id || !pattern.request.prompt.empty();
  if (lines.empty() && drawable) lines.push_back(pattern);
  if (lines.empty()) {
    throw Error(ExitCode::usage, "nothing to draw: give --prompt TEXT, --prompt-file FILE or --class N");
  }
  return lines;
}

}  // namespace

void JobFlags::add(CLI::App& command) {
  command.add_option("-p,--prompt", prompts, "Caption; may be given several times")
      ->allow_extra_args(false)
      ->type_name("TEXT");
  command
      .add_option("--prompt-file", prompt_file,
                  "One prompt a line, or JSON lines with fields; - = standard input")
      ->type_name("FILE");
  command.add_option("--class", class_id, "Class to draw (class-conditional bundles)")->type_name("N");
  command
      .add_option("-o,--output", output,
                  "File, pattern with %04d, {index}, {seed}, or folder (default: output.png)")
      ->type_name("PATTERN");
  command.add_option("-s,--seed", seed, "Picture i draws with seed + i; -1 = random (default: 42)")
      ->type_name("N");
  command.add_option("-b,--batch-count", batch_count, "Pictures per prompt")->type_name("N");
  sampling.add(command);
}

std::vector<Job> make_jobs(const JobFlags& flags, const Request& defaults, std::uint64_t seed) {
  if (flags.batch_count < 1) {
    throw Error(ExitCode::usage,
                "--batch-count: got " + std::to_string(flags.batch_count) + ", expected 1 or more");
  }
  const std::vector<Line> lines = read_lines(flags, defaults);
  const auto copies = static_cast<std::size_t>(flags.batch_count);
  if (copies > kMaxPictures / lines.size()) {
    throw Error(ExitCode::usage, "--batch-count: got " + std::to_string(copies) + " for " +
                                     std::to_string(lines.size()) + " prompts, expected at most " +
                                     std::to_string(kMaxPictures) + " pictures in all");
  }
  std::vector<Job> jobs;
  for (const Line& line : lines) {
    for (std::size_t copy = 0; copy < copies; ++copy) {
      Job job{line.request, line.output, line.origin};
      job.request.seed = line.seed ? *line.seed + copy : seed + jobs.size();
      jobs.push_back(std::move(job));
    }
  }
  return jobs;
}

}  // namespace lamplighter::cli

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

void add_line(Line line, std::vector<Line>& lines) {
  if (!line.request.class_id) check_prompt(line.request.prompt, line.origin);
  lines.push_back(std::move(line));
}

void set_prompt(Line& line, std::string_view prompt) {
  line.request.prompt = prompt;
  line.request.class_id.reset();
}

void set_fields(Line& line, const Json& json) {
  JsonReader record(json, line.origin, ExitCode::input);
  if (record.has("output")) line.output = record.text("output");
  if (const auto seed = read_request_fields(record, line.request)) line.seed = seed;
  record.finish();
}

// Plain prompts, or JSON objects where "{" comes first; blank lines and lines that begin with "#" are
// skipped.
void read_prompt_lines(std::string_view text, const std::string& name, const Line& pattern,
                       std::vector<Line>& lines) {
  for_each_line(text, [&](std::string_view content, std::size_t number) {
    const char first = content[content.find_first_not_of(" \t")];
    if (first == '#') return;
    Line line = pattern;
    line.origin = name + " line " + std::to_string(number);
    if (first == '{') {
      set_fields(line, parse_json(content, line.origin, ExitCode::input));
    } else {
      set_prompt(line, content);
    }
    add_line(std::move(line), lines);
  });
}

// A JSON array of prompts and of objects as JSON lines have them.
void read_prompt_array(std::string_view text, const std::string& name, const Line& pattern,
                       std::vector<Line>& lines) {
  const Json array = parse_json(text, name, ExitCode::input);
  for (std::size_t i = 0; i < array.size(); ++i) {
    Line line = pattern;
    line.origin = name + " element " + std::to_string(i);
    if (array[i].is_string()) {
      set_prompt(line, array[i].get<std::string>());
    } else {
      set_fields(line, array[i]);
    }
    add_line(std::move(line), lines);
  }
}

// "[" and what an array of prompts goes on with; captions in brackets are captions.
bool is_array(std::string_view text) {
  constexpr const char* kSpace = " \t\r\n";
  const std::size_t open = text.find_first_not_of(kSpace);
  if (open == std::string_view::npos || text[open] != '[') return false;
  const std::size_t next = text.find_first_not_of(kSpace, open + 1);
  return next != std::string_view::npos && (text[next] == '{' || text[next] == '"' || text[next] == ']');
}

void read_prompt_file(const std::string& path, const Line& pattern, std::vector<Line>& lines) {
  const std::string bytes = read_input(path);
  const std::string_view text = without_mark(bytes);
  const std::string name = path == "-" ? "standard input" : path;
  const std::size_t found = lines.size();
  (is_array(text) ? read_prompt_array : read_prompt_lines)(text, name, pattern, lines);
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
                  "One prompt a line, JSON lines with fields, or a JSON array; # begins a comment; - = "
                  "standard input")
      ->type_name("FILE");
  command.add_option("--class", class_id, "Class to draw (class-conditional bundles)")->type_name("N");
  command
      .add_option("-o,--output", output,
                  "File, pattern with %04d, {index}, {seed}, or folder; - = standard output (default: "
                  "output.png)")
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

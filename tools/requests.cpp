#include "requests.h"

#include <algorithm>
#include <filesystem>

#include "base/files.h"
#include "base/json.h"
#include "lamplighter/error.h"
#include "text/cleaning.h"

namespace lamplighter::cli {
namespace {

constexpr std::size_t kMaxPictures = 1'000'000;

// One prompt, before it is multiplied by --batch-count.
struct Line {
  Request request;
  std::optional<std::uint64_t> seed;
  std::string output, origin;
};

bool is_blank(const std::string& text) {
  return text.find_first_not_of(" \t\r\n\v\f") == std::string::npos;
}

void check_prompt(const std::string& prompt, const std::string& origin) {
  check_caption(prompt, origin);
  if (prompt.find('\0') != std::string::npos) throw Error(ExitCode::input, origin + ": got a zero byte");
  if (is_blank(prompt)) throw Error(ExitCode::input, origin + ": the prompt is empty");
}

// A line of JSON with the fields of a request.
void read_fields(const std::string& text, Line& line) {
  const Json json = parse_json(text, line.origin, ExitCode::input);
  JsonReader reader(json, line.origin, ExitCode::input);
  const auto side = [&](const char* key) { return static_cast<int>(reader.integer(key, 1, 1 << 20)); };
  Request& request = line.request;
  if (reader.has("prompt")) request.prompt = reader.text("prompt");
  if (reader.has("class")) request.class_id = reader.integer("class", 0);
  if (reader.has("seed")) line.seed = reader.unsigned_integer("seed");
  if (reader.has("output")) line.output = reader.text("output");
  if (reader.has("cfg_scale")) request.cfg_scale = static_cast<float>(reader.number("cfg_scale"));
  if (reader.has("temperature")) request.temperature = static_cast<float>(reader.number("temperature"));
  if (reader.has("top_p")) request.top_p = static_cast<float>(reader.number("top_p"));
  if (reader.has("top_k")) request.top_k = reader.integer("top_k");
  if (reader.has("cfg_interval")) request.cfg_interval = reader.integer("cfg_interval");
  if (reader.has("width")) request.width = side("width");
  if (reader.has("height")) request.height = side("height");
  reader.finish();
}

// Lines of a prompt file: plain prompts, or JSON objects where "{" comes first. Blank lines are
// skipped.
void read_prompt_file(const std::string& path, const Line& pattern, std::vector<Line>& lines) {
  const bool piped = path == "-";
  std::string text = piped ? read_standard_input() : read_file(path, ExitCode::input);
  const std::string name = piped ? "standard input" : path;
  if (text.rfind("\xEF\xBB\xBF", 0) == 0) text.erase(0, 3);  // byte-order mark
  std::size_t number = 0, found = lines.size();
  for (std::size_t begin = 0; begin < text.size(); ++number) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string content = text.substr(begin, end - begin);
    begin = end + 1;
    if (!content.empty() && content.back() == '\r') content.pop_back();
    if (is_blank(content)) continue;
    const bool is_json = content[content.find_first_not_of(" \t")] == '{';
    Line line = pattern;
    line.origin = name + " line " + std::to_string(number + 1);
    if (is_json) {
      read_fields(content, line);
    } else {
      line.request.prompt = content;
      line.request.class_id.reset();
    }
    if (!line.request.class_id) check_prompt(line.request.prompt, line.origin);
    lines.push_back(std::move(line));
  }
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

void check_drawable(const Manifest& manifest) {
  std::string missing;
  for (const std::string& name : missing_for_generation(manifest))
    missing += (missing.empty() ? "" : ", ") + name;
  if (!missing.empty()) {
    throw Error(ExitCode::bundle,
                "bundle " + manifest.directory + " cannot draw pictures: it lacks " + missing);
  }
}

}  // namespace lamplighter::cli

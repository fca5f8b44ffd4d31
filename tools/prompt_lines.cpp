#include "tools/prompt_lines.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <utility>

#include "base/json.h"
#include "base/message.h"
#include "draft/options/options.h"
#include "pipeline/metadata/request_fields.h"
#include "tools/flags.h"
#include "tree/tree.h"

namespace lamplighter::cli {
namespace {

// Only flags choose files to read, and files to write outside the current folder: prompt lines are untrusted
// input.
[[noreturn]] void refuse_file(const std::string& where, const std::string& got, const std::string& expected) {
  throw Error(ExitCode::input, where + ": got " + excerpt_of(got) + ", expected " + expected);
}

std::string read_output(JsonReader& record, const std::string& origin) {
  const std::string output = record.text("output");
  const std::filesystem::path path(output);
  if (path.is_absolute() || std::find(path.begin(), path.end(), "..") != path.end())
    refuse_file(origin + ": output", output, "a name below the current folder; --output may name any file");
  return output;
}

void set_prompt(PromptLine& line, std::string_view prompt) {
  line.request.prompt = prompt;
  line.request.class_id.reset();
}

void set_method(PromptLine& line, JsonReader& record) {
  LineMethod method;
  method.options = read_options(record);
  method.named = record.has("method");
  if (method.named) method.options.method = record.text("method");
  const MethodOptions& options = method.options;
  if (is_tree_file(options.tree))
    refuse_file(line.origin + ": tree", options.tree, "the name of a tree; --tree may name a file");
  if (!options.neighbours.empty())
    refuse_file(line.origin + ": neighbours", options.neighbours, "none; --neighbours may name a file");
  if (method.named || !is_same(method.options, {})) line.method = std::move(method);
}

// A seed of -1 is a random one, as in web UIs. The image records the seed that it got.
std::optional<std::uint64_t> read_seed(Json& record) {
  const auto seed = record.find("seed");
  if (seed == record.end() || !is_random_seed(*seed)) return std::nullopt;
  record.erase(seed);
  return parse_seed("-1");
}

void set_fields(PromptLine& line, const captions::Entry& entry) {
  using Form = captions::Entry::Form;
  Json fields = entry.record;
  const std::optional<std::uint64_t> random = read_seed(fields);
  JsonReader record(fields, line.origin, ExitCode::input);
  if (entry.form == Form::annotation) return set_prompt(line, record.text("caption"));
  if (record.has("output")) {
    line.names_output = true;
    line.output = read_output(record, line.origin);
  }
  if (record.has("batch_count"))
    line.count = static_cast<int>(record.integer("batch_count", 1, std::numeric_limits<int>::max()));
  // Data sets have fields of their own, which may be called like options.
  if (entry.form != Form::data || record.has("method")) set_method(line, record);
  if (entry.prompt_key.empty() && line.request.prompt.empty() && !record.has("class"))
    record.fail("got no prompt, expected prompt, caption, text or class");
  const std::string key = entry.prompt_key.empty() ? "prompt" : entry.prompt_key;
  if (const auto seed = read_request_fields(record, line.request, key)) line.seed = seed;
  if (random) line.seed = random;
  if (entry.form == Form::data) return;
  for (const char* name : {"id", "prompt_id", "item_id", "image_id"}) {
    if (record.has(name)) record.value(name);
  }
  record.finish();
}

// Makes a line of the pattern and an entry, with its failure, if any.
PromptLine line_of(const PromptLine& pattern, const captions::Entry& entry) {
  PromptLine line = pattern;
  line.origin = entry.where;
  line.is_of_file = true;
  try {
    if (entry.failure) throw Error(*entry.failure);
    if (entry.form == captions::Entry::Form::text) {
      set_prompt(line, entry.text);
    } else {
      set_fields(line, entry);
    }
    if (!line.request.class_id) check_prompt(line.request.prompt, line.origin);
  } catch (const Error& error) {
    line.failure = error;
  }
  return line;
}

}  // namespace

PromptLine caption_line(const PromptLine& pattern, const std::string& caption, std::string origin) {
  PromptLine line = pattern;
  line.request.prompt = caption;
  line.origin = std::move(origin);
  check_prompt(caption, line.origin);
  return line;
}

void read_prompts(std::string_view text, const std::string& name, const captions::SourceOptions& options,
                  const PromptLine& pattern, const TakeLine& take) {
  captions::read_entries(text, name, options,
                         [&](const captions::Entry& entry) { take(line_of(pattern, entry)); });
}

}  // namespace lamplighter::cli

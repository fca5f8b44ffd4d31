#include "prompt_lines.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <utility>

#include "base/json.h"
#include "base/lines.h"
#include "base/message.h"
#include "pipeline/requests/request_fields.h"
#include "propose/options/options.h"
#include "tree/tree.h"

namespace lamplighter::cli {
namespace {

// Which files are read, and which are written outside of the current folder, is for flags alone to say: lines
// may come from strangers.
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

void set_fields(PromptLine& line, const Json& json) {
  JsonReader record(json, line.origin, ExitCode::input);
  if (record.has("output")) {
    line.names_output = true;
    line.output = read_output(record, line.origin);
  }
  if (record.has("batch_count"))
    line.count = static_cast<int>(record.integer("batch_count", 1, std::numeric_limits<int>::max()));
  set_method(line, record);
  if (const auto seed = read_request_fields(record, line.request)) line.seed = seed;
  record.finish();
}

// Hands a line over once `fill` has set what is its own.
template <class Fill>
void take_line(const PromptLine& pattern, std::string origin, const TakeLine& take, const Fill& fill) {
  PromptLine line = pattern;
  line.origin = std::move(origin);
  line.is_of_file = true;
  try {
    fill(line);
    if (!line.request.class_id) check_prompt(line.request.prompt, line.origin);
  } catch (const Error& error) {
    line.failure = error;
  }
  take(std::move(line));
}

void read_lines(std::string_view text, const std::string& name, std::size_t first, const PromptLine& pattern,
                const TakeLine& take) {
  for_each_line(text, [&](std::string_view content, std::size_t number) {
    const char begin = content[content.find_first_not_of(" \t")];
    if (begin == '#') return;
    take_line(pattern, name + " line " + std::to_string(first + number - 1), take, [&](PromptLine& line) {
      if (begin != '{') return set_prompt(line, content);
      set_fields(line, parse_json(content, line.origin, ExitCode::input));
    });
  });
}

void read_array(std::string_view text, const std::string& name, const PromptLine& pattern,
                const TakeLine& take) {
  const Json array = parse_json(text, name, ExitCode::input);
  for (std::size_t i = 0; i < array.size(); ++i) {
    take_line(pattern, name + " element " + std::to_string(i), take, [&](PromptLine& line) {
      if (array[i].is_string()) return set_prompt(line, array[i].get<std::string>());
      set_fields(line, array[i]);
    });
  }
}

}  // namespace

PromptLine caption_line(const PromptLine& pattern, const std::string& caption, std::string origin) {
  PromptLine line = pattern;
  line.request.prompt = caption;
  line.origin = std::move(origin);
  check_prompt(caption, line.origin);
  return line;
}

void read_prompts(std::string_view text, const std::string& name, std::size_t number,
                  const PromptLine& pattern, const TakeLine& take) {
  if (begins_array(text)) return read_array(text, name, pattern, take);
  read_lines(text, name, number, pattern, take);
}

bool begins_array(std::string_view text) {
  constexpr const char* kSpace = " \t\r\n";
  const std::size_t open = text.find_first_not_of(kSpace);
  if (open == std::string_view::npos || text[open] != '[') return false;
  const std::size_t next = text.find_first_not_of(kSpace, open + 1);
  return next != std::string_view::npos && (text[next] == '{' || text[next] == '"' || text[next] == ']');
}

}  // namespace lamplighter::cli

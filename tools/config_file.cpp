#include <algorithm>
#include <set>
#include <string>

#include "base/files.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/message.h"
#include "lamplighter/error.h"
#include "tools/flags.h"
#include "tools/usage.h"

namespace lamplighter::cli {
namespace {

// Returns the value of a configuration entry as the text of a flag.
std::string flag_text(const JsonReader& reader, const std::string& key, const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean() || value.is_number()) return value.dump();
  reader.reject(key, "a string, a number, true or false");
}

// Whether a flag is set, and not to false.
bool is_on(const CLI::Option& option) {
  return option.count() != 0 && (option.get_expected_max() != 0 || option.as<bool>());
}

using Options = std::set<const CLI::Option*>;

// Returns one of `others` that this option excludes, or none.
const CLI::Option* excluding(const CLI::Option& option, const Options& others) {
  for (const CLI::Option* other : option.get_excludes()) {
    if (others.count(other) != 0) return other;
  }
  return nullptr;
}

}  // namespace

void apply_config(CLI::App& command, const std::string& path) {
  const Json config = parse_json(read_input(path, limits::kConfig), path, ExitCode::input);
  const JsonReader reader(config, path, ExitCode::input);
  Options given, taken;
  for (const CLI::Option* option : command.get_options()) {
    if (option->count() != 0) given.insert(option);
  }
  for (const auto& [key, value] : config.items()) {
    std::string name = key;
    std::replace(name.begin(), name.end(), '_', '-');
    CLI::Option* option = command.get_option_no_throw("--" + name);
    if (option == nullptr || name == "config" || name == "help" || name == "help-all")
      reader.fail("unknown flag " + excerpt_of(key));
    if (given.count(option) != 0 || excluding(*option, given) != nullptr) continue;
    if (value.is_array()) {
      if (value.empty()) reader.reject(key, "a value or more");
      for (const Json& element : value) option->add_result(flag_text(reader, key, element));
    } else {
      option->add_result(flag_text(reader, key, value));
    }
    try {
      option->run_callback();
    } catch (const CLI::ParseError& error) {
      reader.fail(describe_value(command, error));
    }
    if (!is_on(*option)) continue;
    if (const CLI::Option* other = excluding(*option, taken))
      reader.fail(option->get_name() + " and " + other->get_name() + " exclude each other");
    taken.insert(option);
  }
}

}  // namespace lamplighter::cli

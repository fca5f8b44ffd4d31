#include "tools/usage.h"

#include <vector>

#include "base/message.h"
#include "base/suggestion.h"
#include "tools/help.h"
#include "tools/values.h"

namespace lamplighter::cli {
namespace {

std::vector<std::string> flags_of(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

// The flag that a word begins with: "-p" of "-pboat", "--seed" of "--seed=3".
std::string flag_in(const std::string& word) {
  return word.rfind("--", 0) == 0 ? word.substr(0, word.find('=')) : word.substr(0, 2);
}

// The first word is no command. A flag or a caption belongs to a command that was left out.
std::string wrong_command(const CLI::App& app) {
  const std::vector<std::string> extra = app.remaining(true);
  if (extra.empty()) return "no command given";
  const std::string& word = extra.front();
  if (word.find(' ') != std::string::npos && word.front() != '-')
    return unknown_command(app, word) +
           "; a caption stands behind -p: lamplighter generate -p \"a red boat\"";
  if (word.front() != '-') return unknown_command(app, word);
  const std::string flag = flag_in(word);
  for (const CLI::App* command : commands_of(app)) {
    if (command->get_option_no_throw(flag) == nullptr) continue;
    const std::string& name = command->get_name();
    return "no command given; " + flag + " is a flag of " + name + ": lamplighter " + name + " " + flag +
           " ...";
  }
  return "no command given before " + excerpt_of(word) + did_you_mean(flag, flags_of(app));
}

std::string unknown_argument(const CLI::App& command) {
  const std::string word = command.remaining(true).front();
  const std::string name = word.substr(0, word.find('='));
  std::string hint;
  if (name.rfind("--", 0) == 0) {
    hint = did_you_mean(name, flags_of(command));
  } else if (name.rfind('-', 0) != 0 && command.get_option_no_throw("--prompt") != nullptr) {
    hint = "; a caption of several words needs quotes: -p \"a red boat\"";
  }
  return "unknown argument " + excerpt_of(word) + hint;
}

std::string expected_by(const CLI::App& command, const std::string& flag) {
  const CLI::Option* option = command.get_option_no_throw(flag);
  return option == nullptr ? "another value" : expected_of(*option);
}

// Reads CLI11's "Could not convert: --seed = foo".
std::string wrong_value(const CLI::App& command, const std::string& message) {
  const std::size_t begin = message.find(": "), middle = message.find(" = ");
  if (begin == std::string::npos || middle == std::string::npos) return message;
  const std::string flag = message.substr(begin + 2, middle - begin - 2);
  const std::string value = message.substr(middle + 3);
  const bool large = value.find_first_not_of("0123456789") == std::string::npos;
  return flag + ": got " + quote(value) + ", expected " +
         (large ? "a smaller number" : expected_by(command, flag));
}

// Reads CLI11's "--seed: 1 required N missing" and "--seed: At Most 1 required but received 2".
std::string wrong_count(const CLI::App& command, const std::string& message) {
  const std::string flag = message.substr(0, message.find(':'));
  constexpr const char* kReceived = "received ";
  const std::size_t received = message.rfind(kReceived);
  if (received == std::string::npos) return flag + ": got nothing, expected " + expected_by(command, flag);
  const std::string count = message.substr(received + std::string(kReceived).size());
  const CLI::Option* const option = command.get_option_no_throw(flag);
  const int expected = option == nullptr ? 1 : option->get_expected_max();
  return flag + ": got " + count + (count == "1" ? " value" : " values") + ", expected " +
         (expected == 1 ? "one" : std::to_string(expected));
}

std::string complaint(const CLI::App& app, const CLI::ParseError& error) {
  const auto chosen = app.get_subcommands();
  if (chosen.empty()) return wrong_command(app);
  const CLI::App& command = *chosen.front();
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr && !command.remaining(true).empty())
    return unknown_argument(command);
  return describe_value(command, error);
}

}  // namespace

std::string unknown_command(const CLI::App& app, const std::string& name) {
  std::vector<std::string> names;
  for (const CLI::App* command : commands_of(app)) names.push_back(command->get_name());
  return "unknown command " + excerpt_of(name) + did_you_mean(name, names);
}

std::string describe_value(const CLI::App& command, const CLI::ParseError& error) {
  const std::string message = error.what();
  if (dynamic_cast<const CLI::ConversionError*>(&error) != nullptr) return wrong_value(command, message);
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) return wrong_count(command, message);
  return message;
}

std::string describe_usage(const CLI::App& app, const CLI::ParseError& error) {
  const auto chosen = app.get_subcommands();
  const std::string name = chosen.empty() ? "" : " " + chosen.front()->get_name();
  return complaint(app, error) + " (help: lamplighter" + name + " --help)";
}

}  // namespace lamplighter::cli

#include "help.h"

#include <algorithm>
#include <sstream>
#include <vector>

namespace lamplighter::cli {
namespace {

constexpr std::size_t kColumns = 100, kIndent = 2, kMeaning = 30;
constexpr const char* kOther = "Options";  // of CLI11, for what has no group

std::string names_of(const CLI::Option& option) {
  std::string names;
  for (const std::string& name : option.get_snames()) names += (names.empty() ? "-" : ", -") + name;
  for (const std::string& name : option.get_lnames()) names += (names.empty() ? "--" : ", --") + name;
  if (names.empty()) return option.get_name();
  const std::string type = option.get_expected_max() == 0 ? "" : option.get_type_name();
  return names + (type.empty() ? "" : " " + type);
}

std::string section(const CLI::App& app, const std::string& group) {
  const auto options =
      app.get_options([&](const CLI::Option* option) { return option->get_group() == group; });
  std::string text;
  for (const CLI::Option* option : options) text += help_entry(names_of(*option), option->get_description());
  return text;
}

std::string options_of(const CLI::App& app) {
  std::vector<std::string> groups = app.get_groups();
  // What every command has comes last.
  std::stable_partition(groups.begin(), groups.end(),
                        [](const std::string& group) { return group != kOther; });
  std::string text;
  for (const std::string& group : groups) {
    const std::string options = section(app, group);
    if (!group.empty() && !options.empty()) text += "\n" + group + "\n" + options;
  }
  return text;
}

}  // namespace

std::string help_entry(const std::string& name, const std::string& meaning) {
  std::string text(kIndent, ' ');
  text += name;
  std::size_t column = text.size();
  if (column + 2 > kMeaning) {
    text += "\n";
    column = 0;
  }
  text.append(kMeaning - column, ' ');
  column = kMeaning;
  std::istringstream words(meaning);
  for (std::string word; words >> word;) {
    if (column > kMeaning && column + 1 + word.size() > kColumns) {
      text += "\n" + std::string(kMeaning, ' ');
      column = kMeaning;
    }
    if (column > kMeaning) {
      text += ' ';
      ++column;
    }
    text += word;
    column += word.size();
  }
  return text + "\n";
}

std::string Help::make_help(const CLI::App* app, std::string name, CLI::AppFormatMode /*mode*/) const {
  const auto commands = app->get_subcommands([](const CLI::App*) { return true; });
  if (name.empty()) name = app->get_name();
  std::string positional;
  for (const CLI::Option* option : app->get_options()) {
    if (option->get_positional()) positional = " [" + option->get_type_name() + "]";
  }
  std::string text = app->get_description() + "\nUsage: " + name +
                     (commands.empty() ? positional + " [OPTIONS]" : " COMMAND [OPTIONS]") + "\n";
  if (!commands.empty()) text += "\nCommands\n";
  for (const CLI::App* command : commands)
    text += help_entry(command->get_name(), command->get_description());
  text += options_of(*app);
  return text + (app->get_footer().empty() ? "" : "\n" + app->get_footer() + "\n");
}

void add_examples(CLI::App& command, std::initializer_list<Example> examples) {
  std::string text = command.get_footer().empty() ? "Examples" : command.get_footer() + "\n\nExamples";
  for (const Example& example : examples) {
    text += std::string("\n  # ") + example.meaning;
    text += std::string("\n  ") + example.command;
  }
  command.footer(text);
}

}  // namespace lamplighter::cli

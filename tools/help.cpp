#include "tools/help.h"

#include <algorithm>
#include <sstream>
#include <utility>

namespace lamplighter::cli {
namespace {

constexpr std::size_t kColumns = 100, kIndent = 2, kMeaning = 30;
constexpr const char* kOther = "Options";  // CLI11's group of options without one

using Filter = std::function<bool(const CLI::Option*)>;

std::string entries(const CLI::App& app, const HelpPage& page, const Filter& filter) {
  std::string text;
  for (const CLI::Option* option : app.get_options(filter))
    text += help_entry(names_of(*option), meaning_of(*option, page));
  return text;
}

// Options that every command has come last.
std::string common_options(const CLI::App& app, const HelpPage& page) {
  const auto is_help = [&](const CLI::Option* option) {
    return option == app.get_help_ptr() || option == app.get_help_all_ptr();
  };
  const auto is_common = [&](const CLI::Option* option) {
    return page.common.count(option->get_name()) != 0;
  };
  return "\nCommon options\n" + entries(app, page, is_common) + entries(app, page, is_help);
}

std::string all_options(const CLI::App& app, const HelpPage& page) {
  std::string text;
  for (const FlagGroup& group : groups_of(app)) {
    text += "\n" + group.heading + "\n";
    for (const CLI::Option* option : group.flags)
      text += help_entry(names_of(*option), meaning_of(*option, page));
  }
  return text;
}

// A heading is printed before the first command of its group.
std::string command_list(const std::vector<const CLI::App*>& commands) {
  std::string text, group;
  for (const CLI::App* command : commands) {
    if (text.empty() || command->get_group() != group)
      text += command->get_group() == kOtherCommands ? "\nOther commands\n" : "\nCommands\n";
    group = command->get_group();
    text += help_entry(command->get_name(), command->get_description());
  }
  return text;
}

// The first `count` examples.
std::string examples(const HelpPage& page, std::size_t count) {
  count = std::min(count, page.examples.size());
  std::string text = count == 0 ? "" : count == 1 ? "\nExample\n" : "\nExamples\n";
  for (std::size_t i = 0; i < count; ++i) {
    text += std::string("  # ") + page.examples[i].meaning + "\n";
    text += std::string("  ") + page.examples[i].command + "\n";
  }
  return text;
}

}  // namespace

std::vector<CLI::App*> commands_of(CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

std::string names_of(const CLI::Option& option) {
  std::string names;
  for (const std::string& name : option.get_snames()) names += (names.empty() ? "-" : ", -") + name;
  for (const std::string& name : option.get_lnames()) names += (names.empty() ? "--" : ", --") + name;
  if (names.empty()) return option.get_name();
  const std::string type = option.get_expected_max() == 0 ? "" : option.get_type_name();
  return names + (type.empty() ? "" : " " + type);
}

std::string meaning_of(const CLI::Option& option, const HelpPage& page) {
  const auto found = page.usual.find(option.get_name());
  const std::string usual = found == page.usual.end() ? option.get_default_str() : found->second();
  return option.get_description() + (usual.empty() ? "" : " [default: " + usual + "]");
}

std::vector<FlagGroup> groups_of(const CLI::App& command) {
  std::vector<FlagGroup> groups;
  for (const std::string& heading : command.get_groups()) {
    FlagGroup group{heading, command.get_options(
                                 [&](const CLI::Option* option) { return option->get_group() == heading; })};
    if (!heading.empty() && !group.flags.empty()) groups.push_back(std::move(group));
  }
  std::stable_partition(groups.begin(), groups.end(),
                        [](const FlagGroup& group) { return group.heading != kOther; });
  return groups;
}

std::string usage_of(const CLI::App& app, const std::string& name) {
  std::string positional;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional()) positional = " [" + option->get_type_name() + "]";
  }
  return name + (commands_of(app).empty() ? positional : " COMMAND") + " [OPTIONS]";
}

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

std::string Help::make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const {
  static const HelpPage kNone;
  const auto found = pages_.find(app);
  const HelpPage& page = found == pages_.end() ? kNone : found->second;
  const std::vector<const CLI::App*> commands = commands_of(*app);
  const bool all = mode == CLI::AppFormatMode::All, is_short = !all && !page.common.empty();
  if (name.empty()) name = app->get_name();
  std::string text = app->get_description() + "\nUsage: " + usage_of(*app, name) + "\n";
  text += command_list(commands);
  if (is_short) {
    text += common_options(*app, page) + examples(page, 1);
    return text + "\nAll options and more examples: " + name + " --help-all\n";
  }
  text += all_options(*app, page);
  for (const auto& list : page.lists) {
    const HelpList shown = list();
    if (!shown.entries.empty()) text += "\n" + shown.heading + "\n";
    for (const auto& [entry, meaning] : shown.entries) text += help_entry(entry, meaning);
  }
  text += examples(page, page.examples.size());
  for (const CLI::App* command : commands) {
    if (all) text += "\n\n" + make_help(command, name + " " + command->get_name(), mode);
  }
  return text;
}

HelpPage& Help::page(CLI::App& command) {
  return static_cast<Help&>(*command.get_formatter()).pages_[&command];
}

void add_examples(CLI::App& command, const std::vector<Example>& examples) {
  HelpPage& page = Help::page(command);
  page.examples.insert(page.examples.end(), examples.begin(), examples.end());
}

CLI::Option* common(CLI::App& command, CLI::Option* flag) {
  Help::page(command).common.insert(flag->get_name());
  return flag;
}

CLI::Option* with_choices(CLI::App& command, CLI::Option* flag, std::vector<std::string> choices) {
  Help::page(command).choices[flag->get_name()] = std::move(choices);
  return flag;
}

CLI::Option* with_usual(CLI::App& command, CLI::Option* flag, HelpPage::Text usual) {
  Help::page(command).usual[flag->get_name()] = std::move(usual);
  return flag;
}

}  // namespace lamplighter::cli

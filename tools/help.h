#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace lamplighter::cli {

// An example of a command, and what it does.
struct Example {
  const char *meaning, *command;
};

// Names with their meanings under a heading: methods, layouts, words.
struct HelpList {
  std::string heading;
  std::vector<std::pair<std::string, std::string>> entries;
};

// What the help of a command says beside the names and meanings of its flags. The short form, --help, has the
// common flags and the first example; --help-all has everything. A page without common flags has one form.
struct HelpPage {
  using Text = std::function<std::string()>;  // called when help is printed

  std::set<std::string> common;       // names of flags
  std::map<std::string, Text> usual;  // defaults by name of the flag, where no variable holds them
  std::map<std::string, std::vector<std::string>> choices;  // words that a flag takes, by its name
  std::vector<std::function<HelpList()>> lists;             // below the flags
  std::vector<Example> examples;
};

// The group of commands about the program itself, which lists of commands show last.
inline constexpr const char* kOtherCommands = "Other commands";

// Formats --help and --help-all for terminals of 100 columns or more. Holds the pages of all commands.
class Help : public CLI::FormatterBase {
 public:
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;

  // The page of a command whose formatter is a Help, as subcommands inherit it.
  static HelpPage& page(CLI::App& command);

 private:
  std::map<const CLI::App*, HelpPage> pages_;
};

// Formats an entry of help: the name on the left, its meaning wrapped on the right.
std::string help_entry(const std::string& name, const std::string& meaning);

// The commands of the program, in the order of --help.
std::vector<CLI::App*> commands_of(CLI::App& app);
std::vector<const CLI::App*> commands_of(const CLI::App& app);

// "-o, --output PATTERN".
std::string names_of(const CLI::Option& option);
// With the default.
std::string meaning_of(const CLI::Option& option, const HelpPage& page);

// The flags under a heading.
struct FlagGroup {
  std::string heading;
  std::vector<const CLI::Option*> flags;
};
std::vector<FlagGroup> groups_of(const CLI::App& command);

// "lamplighter inspect [DIR] [OPTIONS]".
std::string usage_of(const CLI::App& app, const std::string& name);

void add_examples(CLI::App& command, const std::vector<Example>& examples);

// Shows a flag in the short form, too. Returns the flag.
CLI::Option* common(CLI::App& command, CLI::Option* flag);

// Sets a default that is known only when help is printed. Returns the flag.
CLI::Option* with_usual(CLI::App& command, CLI::Option* flag, HelpPage::Text usual);

// Sets the words that shells complete for a flag. Returns the flag.
CLI::Option* with_choices(CLI::App& command, CLI::Option* flag, std::vector<std::string> choices);

// Puts the options that follow under this heading.
inline void begin_group(CLI::App& command, const char* head) {
  command.option_defaults()->group(head);
}

}  // namespace lamplighter::cli

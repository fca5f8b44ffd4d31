// Commands that print a text about the program. The launcher has all of these texts compiled in.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/message.h"
#include "base/suggestion.h"
#include "lamplighter/error.h"
#include "tools/commands/commands.h"
#include "tools/completion.h"
#include "tools/help.h"
#include "tools/man_page.h"
#include "tools/terminal.h"
#include "tools/usage.h"

namespace lamplighter::cli {
namespace {

CLI::App* add_other(CLI::App& app, const char* name, const char* meaning) {
  CLI::App* command = app.add_subcommand(name, meaning);
  command->group(kOtherCommands);
  return command;
}

void print(const std::string& text) {
  Terminal({}).result(text.substr(0, text.find_last_not_of('\n') + 1));
}

// CLI11 would print the help of the command that runs.
std::string help_of_all(const CLI::App& app) {
  return app.get_formatter()->make_help(&app, "", CLI::AppFormatMode::Normal);
}

std::string help_of(const CLI::App& app, const std::string& topic) {
  for (const CLI::App* command : commands_of(app)) {
    if (command->get_name() == topic) return command->help(app.get_name());
  }
  throw Error(ExitCode::usage, unknown_command(app, topic));
}

}  // namespace

void add_help(CLI::App& app) {
  auto topic = std::make_shared<std::string>();
  CLI::App* command = add_other(app, "help", "Print the help of the program, or of a command");
  std::vector<std::string> names;
  for (const CLI::App* one : commands_of(app)) names.push_back(one->get_name());
  with_choices(*command,
               command->add_option("command", *topic, "The command to explain")->type_name("COMMAND"), names);
  add_examples(*command, {{"the common options of a command", "lamplighter help generate"}});
  command->callback([&app, topic] { print(topic->empty() ? help_of_all(app) : help_of(app, *topic)); });
}

void add_completion(CLI::App& app) {
  auto name = std::make_shared<std::string>();
  CLI::App* command =
      add_other(app, "completion", "Print a script that completes commands, flags and values in a shell");
  std::vector<std::string> names;
  for (const Shell& shell : shells()) names.emplace_back(shell.name);
  with_choices(
      *command,
      command->add_option("shell", *name, "The shell: " + list_of(names))->required()->type_name("SHELL"),
      names);
  add_examples(*command,
               {{"for bash, a line of ~/.bashrc", "source <(lamplighter completion bash)"},
                {"for zsh, a line of ~/.zshrc after compinit", "source <(lamplighter completion zsh)"}});
  command->callback([&app, name, names] {
    for (const Shell& shell : shells()) {
      if (*name == shell.name) return print(shell.script(app));
    }
    throw Error(ExitCode::usage,
                "shell: got " + quote(*name) + ", expected " + list_of(names) + did_you_mean(*name, names));
  });
}

void add_man(CLI::App& app) {
  CLI::App* command = add_other(app, "man", "Print the manual page, in roff");
  add_examples(*command, {{"read the manual page", "lamplighter man | man -l -"}});
  command->callback([&app] { print(man_page(app)); });
}

}  // namespace lamplighter::cli

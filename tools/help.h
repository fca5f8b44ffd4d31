#pragma once

#include <CLI/CLI.hpp>
#include <initializer_list>
#include <string>

namespace lamplighter::cli {

// The text of --help, for terminals of 100 columns and more: what a command does, its options by group, what
// it adds, examples.
class Help : public CLI::FormatterBase {
 public:
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;
};

// A line of help: a name to the left, its meaning to the right in as many lines as it takes.
std::string help_entry(const std::string& name, const std::string& meaning);

// An example of a command, and what it does.
struct Example {
  const char *meaning, *command;
};
void add_examples(CLI::App& command, std::initializer_list<Example> examples);

// Options that are added from here on stand under this head.
inline void begin_group(CLI::App& command, const char* head) {
  command.option_defaults()->group(head);
}

}  // namespace lamplighter::cli

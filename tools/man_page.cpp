#include "tools/man_page.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "lamplighter/version.h"
#include "tools/help.h"

namespace lamplighter::cli {
namespace {

// Roff reads these as other characters or as the beginning of an instruction.
std::string roff(const std::string& text) {
  static const std::map<char, std::string> kEscaped{{'\\', "\\e"},  {'-', "\\-"},   {'\'', "\\(aq"},
                                                    {'"', "\\(dq"}, {'^', "\\(ha"}, {'~', "\\(ti"},
                                                    {'`', "\\(ga"}};
  std::string safe;
  for (const char c : text) {
    const auto escaped = kEscaped.find(c);
    safe += escaped == kEscaped.end() ? std::string(1, c) : escaped->second;
  }
  return safe.empty() || safe.front() != '.' ? safe : "\\&" + safe;
}

std::string bold(const std::string& text) {
  return "\\fB" + roff(text) + "\\fR";
}

std::string heading(const char* macro, std::string text) {
  return std::string(macro) + " \"" + roff(text) + "\"\n";
}

std::string entry(const std::string& name, const std::string& meaning) {
  return ".TP\n" + name + "\n" + roff(meaning) + "\n";
}

// "-o, --output PATTERN" with the names in bold and the value in italics.
std::string flag_name(const CLI::Option& option) {
  const std::string names = names_of(option), type = option.get_type_name();
  const bool has_value = names.size() > type.size() && !type.empty() && names.front() == '-' &&
                         names.compare(names.size() - type.size(), type.size(), type) == 0;
  if (!has_value) return bold(names);
  return bold(names.substr(0, names.size() - type.size())) + "\\fI" + roff(type) + "\\fR";
}

std::string flags(const CLI::App& command, const HelpPage& page) {
  std::string text;
  for (const FlagGroup& group : groups_of(command)) {
    text += ".PP\n" + bold(group.heading) + "\n";
    for (const CLI::Option* option : group.flags)
      text += entry(flag_name(*option), meaning_of(*option, page));
  }
  return text;
}

std::string list_entries(const HelpList& list) {
  std::string text;
  for (const auto& [name, meaning] : list.entries) text += entry(bold(name), meaning);
  return text;
}

// Lines stay as they are, so that they can be copied.
std::string examples(const HelpPage& page) {
  std::string text;
  for (const Example& example : page.examples)
    text += ".PP\n" + roff(example.meaning) + ":\n.PP\n.RS 4\n.nf\n" + roff(example.command) + "\n.fi\n.RE\n";
  return text;
}

std::string command_section(CLI::App& command, const std::string& program) {
  const HelpPage& page = Help::page(command);
  std::string text = heading(".SH", program + " " + command.get_name());
  text += roff(command.get_description()) + ".\n.PP\n" +
          roff(usage_of(command, program + " " + command.get_name())) + "\n" + flags(command, page);
  for (const auto& make : page.lists) {
    const HelpList list = make();
    if (!list.entries.empty()) text += ".PP\n" + bold(list.heading) + "\n" + list_entries(list);
  }
  return text + examples(page);
}

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::toupper(c); });
  return text;
}

}  // namespace

std::string man_page(CLI::App& app) {
  const HelpPage& page = Help::page(app);
  const std::string name = app.get_name(), version = name + " " + kVersion;
  std::string text = ".TH \"" + upper(name) + "\" 1 \"\" \"" + version + "\" \"User commands\"\n.nh\n.ad l\n";
  text += ".SH NAME\n" + name + " \\- generates images with visual autoregressive models\n";
  text += ".SH SYNOPSIS\n" + bold(name) + " \\fICOMMAND\\fR [OPTIONS]\n";
  text += ".SH DESCRIPTION\n" + roff(app.get_description()) + "\n.SH COMMANDS\n";
  for (const CLI::App* command : commands_of(app))
    text += entry(bold(command->get_name()), command->get_description());
  text += ".SH OPTIONS\n";
  for (const CLI::Option* option : app.get_options())
    text += entry(flag_name(*option), option->get_description());
  for (CLI::App* command : commands_of(app)) text += command_section(*command, name);
  for (const auto& make : page.lists) {
    const HelpList list = make();
    text += heading(".SH", upper(list.heading)) + list_entries(list);
  }
  return text + ".SH EXAMPLES\n" + examples(page);
}

}  // namespace lamplighter::cli

#include "tools/known_texts.h"

#include <string>
#include <vector>

#include "tools/completion.h"
#include "tools/help.h"
#include "tools/man_page.h"

namespace lamplighter::cli {
namespace {

struct KnownText {
  std::vector<std::string> commands;  // without the program's name
  std::string text;
};

// `name` is empty for the program itself.
void add_help_texts(const CLI::App& command, const std::string& name, const std::string& program,
                    std::vector<KnownText>& texts) {
  const std::string before = name.empty() ? "" : name + " ", after = name.empty() ? "" : " " + name;
  texts.push_back({{before + "--help", before + "-h", "help" + after}, command.help(program)});
  texts.push_back({{before + "--help-all"}, command.help(program, CLI::AppFormatMode::All)});
}

std::vector<KnownText> known_texts(CLI::App& app) {
  std::vector<KnownText> texts{{{"--version", "-V"}, app.version()}, {{"man"}, man_page(app)}};
  for (const Shell& shell : shells())
    texts.push_back({{std::string("completion ") + shell.name}, shell.script(app)});
  add_help_texts(app, "", "", texts);
  for (const CLI::App* command : commands_of(app))
    add_help_texts(*command, command->get_name(), app.get_name(), texts);
  return texts;
}

}  // namespace

void print_known_texts(CLI::App& app, std::ostream& out) {
  std::string rows;
  std::size_t number = 0;
  for (const KnownText& known : known_texts(app)) {
    const std::string name = "kText" + std::to_string(number++);
    out << "inline constexpr const char* " << name << " = R\"text("
        << known.text.substr(0, known.text.find_last_not_of('\n') + 1) << ")text\";\n";
    for (const std::string& command : known.commands) rows += "    {\"" + command + "\", " + name + "},\n";
  }
  out << "struct KnownText {\n  const char *command, *text;\n};\n"
      << "inline constexpr KnownText kKnownTexts[] = {\n"
      << rows << "};\n";
}

}  // namespace lamplighter::cli

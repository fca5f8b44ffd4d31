#include "tools/completion.h"

#include <algorithm>
#include <utility>

#include "tools/help.h"
#include "tools/values.h"

namespace lamplighter::cli {
namespace {

constexpr const char* kBashBegin =
    R"sh(# Completion for bash; `lamplighter completion bash` prints this script.
_lamplighter() {
  local current=${COMP_WORDS[COMP_CWORD]} flag=${COMP_WORDS[COMP_CWORD - 1]} command=
  local flags= words= also= list= before= free=
  # Bash makes three words of --flag=value.
  if [[ $current == = ]]; then
    current=
  elif [[ $flag == = ]]; then
    flag=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  ((COMP_CWORD == 1)) || command=${COMP_WORDS[1]}
  case $command in
)sh";
// Readline completes names of files, because it knows how to quote them.
constexpr const char* kBashEnd = R"sh(  esac
  if [[ $free && $current == -* ]]; then words=$flags also=; fi
  if [[ $list ]]; then before=${current%"${current##*,}"}; fi
  mapfile -t COMPREPLY < <(compgen -P "$before" -W "$words" -- "${current#"$before"}")
  case $also in
    files) ;;
    folders) compopt +o default -o dirnames ;;
    *) compopt +o default ;;
  esac
}
complete -o default -F _lamplighter lamplighter
)sh";

constexpr const char* kZshBegin = R"sh(#compdef lamplighter
# Completion for zsh; `lamplighter completion zsh` prints this script.
_lamplighter() {
  local command=
  local -a commands specs
  (( CURRENT == 2 )) || command=$words[2]
  case $command in
)sh";
constexpr const char* kZshEnd = R"sh(  esac
  if (( CURRENT > 2 )); then
    shift words
    (( CURRENT-- ))
  fi
  _arguments -s $specs
}
# Loaded by compinit, or sourced.
if [[ $funcstack[1] == _lamplighter ]]; then
  _lamplighter "$@"
else
  compdef _lamplighter lamplighter
fi
)sh";

// What stands at a place of a command line.
struct Value {
  std::vector<std::string> words;
  Completes also;  // where no word fits
  bool is_list;

  bool operator==(const Value& other) const {
    return words == other.words && also == other.also && is_list == other.is_list;
  }
};

Value value_of(CLI::App& command, const CLI::Option& option) {
  const HelpPage& page = Help::page(command);
  const auto found = page.choices.find(option.get_name());
  return {found == page.choices.end() ? std::vector<std::string>() : found->second, completes(option),
          is_list(option)};
}

bool takes_value(const CLI::Option& option) {
  return option.get_expected_max() > 0;
}

std::vector<std::string> flags_of(const CLI::Option& option) {
  std::vector<std::string> flags;
  for (const std::string& name : option.get_snames()) flags.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) flags.push_back("--" + name);
  return flags;
}

std::string joined(const std::vector<std::string>& words, const char* between = " ") {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
  return text;
}

// Between single quotes of a shell.
std::string quoted(const std::string& text) {
  std::string safe;
  for (const char c : text) safe += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return "'" + safe + "'";
}

std::string bash_value(const Value& value) {
  std::string text;
  if (!value.words.empty()) text += " words=" + quoted(joined(value.words));
  if (value.also != Completes::nothing)
    text += std::string(" also=") + (value.also == Completes::files ? "files" : "folders");
  return text + (value.is_list ? " list=1" : "");
}

// The branch of a command: its flags, what follows each of them, and what stands in other places.
std::string bash_branch(CLI::App& command) {
  std::vector<std::string> flags;
  std::vector<std::pair<Value, std::vector<std::string>>> places;  // flags with equal values
  std::string other = " words=$flags also=files";
  for (const CLI::Option* option : command.get_options()) {
    const std::vector<std::string> names = flags_of(*option);
    flags.insert(flags.end(), names.begin(), names.end());
    const Value value = value_of(command, *option);
    if (option->get_positional()) other = bash_value(value);
    if (!takes_value(*option) || names.empty()) continue;
    auto place =
        std::find_if(places.begin(), places.end(), [&](const auto& one) { return one.first == value; });
    if (place == places.end()) place = places.insert(place, {value, {}});
    place->second.insert(place->second.end(), names.begin(), names.end());
  }
  std::string text = "      flags=" + quoted(joined(flags)) + "\n      case $flag in\n";
  for (const auto& [value, names] : places)
    text += "        " + joined(names, " | ") + ")" + bash_value(value) + " ;;\n";
  return text + "        *) free=1" + other + " ;;\n      esac\n      ;;\n";
}

// A text inside a specification of _arguments.
std::string zsh_text(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') safe += '\\';
    safe += c;
  }
  return safe;
}

std::string zsh_action(const Value& value) {
  const std::string words = joined(value.words);
  const char* names = value.also == Completes::folders ? "_files -/" : "_files";
  if (value.also == Completes::nothing)
    return words.empty() ? " " : value.is_list ? "_sequence compadd - " + words : "(" + words + ")";
  return words.empty() ? names : "{compadd - " + words + "; " + names + "}";
}

// ":PATTERN:_files", once for each value that has to be there.
std::string zsh_values(CLI::App& command, const CLI::Option& option) {
  std::string text;
  for (int i = 0; i < std::max(1, option.get_expected_min()); ++i)
    text += ":" + zsh_text(option.get_type_name()) + ":" + zsh_action(value_of(command, option));
  return text;
}

// The branch of a command, or of the program with `first`, what stands in the first place.
std::string zsh_branch(CLI::App& command, const std::string& first = "") {
  std::string text = "      specs=(\n";
  const auto add = [&](const std::string& spec) { text += "        " + quoted(spec) + "\n"; };
  if (!first.empty()) add(first);
  for (const CLI::Option* option : command.get_options()) {
    const std::vector<std::string> names = flags_of(*option);
    const std::string once = option->get_expected_max() > 2 ? "*" : "(" + joined(names) + ")";
    const std::string meaning = "[" + zsh_text(option->get_description()) + "]";
    for (const std::string& name : names) {
      const std::string value = takes_value(*option) ? zsh_values(command, *option) : "";
      add(once + name + (!value.empty() && name[1] == '-' ? "=" : "") + meaning + value);
    }
    if (option->get_positional()) add("1" + zsh_values(command, *option));
  }
  return text + "      )\n      ;;\n";
}

}  // namespace

std::string bash_completion(CLI::App& app) {
  std::vector<std::string> names;
  std::string branches;
  for (CLI::App* command : commands_of(app)) {
    names.push_back(command->get_name());
    branches += "    " + command->get_name() + ")\n" + bash_branch(*command);
  }
  std::vector<std::string> flags;
  for (const CLI::Option* option : app.get_options()) {
    for (std::string& flag : flags_of(*option)) flags.push_back(std::move(flag));
  }
  return kBashBegin + branches + "    '') free=1 words=" + quoted(joined(names)) +
         " flags=" + quoted(joined(flags)) + " ;;\n" + kBashEnd;
}

std::string zsh_completion(CLI::App& app) {
  std::string commands, branches;
  for (CLI::App* command : commands_of(app)) {
    commands += "        " +
                quoted(zsh_text(command->get_name()) + ":" + zsh_text(command->get_description())) + "\n";
    branches += "    " + command->get_name() + ")\n" + zsh_branch(*command);
  }
  return kZshBegin + branches + "    *)\n      commands=(\n" + commands + "      )\n" +
         zsh_branch(app, "1:command:{_describe command commands}") + kZshEnd;
}

const std::vector<Shell>& shells() {
  static const std::vector<Shell> all{{"bash", bash_completion}, {"zsh", zsh_completion}};
  return all;
}

}  // namespace lamplighter::cli

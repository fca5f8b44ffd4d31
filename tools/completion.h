#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace lamplighter::cli {

// Scripts that teach a shell the commands, flags and values of the program, from what --help knows. They call
// no program, so that a Tab takes no time.
std::string bash_completion(CLI::App& app);
std::string zsh_completion(CLI::App& app);

struct Shell {
  const char* name;
  std::string (*script)(CLI::App& app);
};
const std::vector<Shell>& shells();

}  // namespace lamplighter::cli

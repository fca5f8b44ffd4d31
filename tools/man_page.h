#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace lamplighter::cli {

// The manual page of the program, in roff, from what --help-all knows.
std::string man_page(CLI::App& app);

}  // namespace lamplighter::cli

#pragma once

#include <CLI/CLI.hpp>
#include <ostream>

namespace lamplighter::cli {

// Prints as C++ all that the launcher answers by itself: command lines, and the texts that they print.
void print_known_texts(CLI::App& app, std::ostream& out);

}  // namespace lamplighter::cli

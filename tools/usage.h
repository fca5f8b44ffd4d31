#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace lamplighter::cli {

// What is wrong with a command line, in one line: what, got, expected, a hint, and where help is. `error` is
// what parsing it threw.
std::string describe_usage(const CLI::App& app, const CLI::ParseError& error);

// The same about a value alone: "--top-k: got 'x', expected a whole number".
std::string describe_value(const CLI::App& command, const CLI::ParseError& error);

}  // namespace lamplighter::cli

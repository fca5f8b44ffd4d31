#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace lamplighter::cli {

// Describes a wrong command line in one line: what, got, expected, a hint, and where help is. `error` comes
// from parsing it.
std::string describe_usage(const CLI::App& app, const CLI::ParseError& error);

// "unknown command genrate; did you mean generate?"
std::string unknown_command(const CLI::App& app, const std::string& name);

// Describes a wrong value: "--top-k: got 'x', expected a whole number".
std::string describe_value(const CLI::App& command, const CLI::ParseError& error);

}  // namespace lamplighter::cli

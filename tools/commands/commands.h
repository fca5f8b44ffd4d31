#pragma once

#include <CLI/CLI.hpp>

namespace lamplighter::cli {

// Each function adds one subcommand, which runs as a callback of the parser and throws on failure.
void add_generate(CLI::App& app);
void add_batch(CLI::App& app);
void add_decode(CLI::App& app);
void add_encode(CLI::App& app);
void add_describe(CLI::App& app);
void add_inspect(CLI::App& app);
void add_check(CLI::App& app);
void add_bench(CLI::App& app);
void add_devices(CLI::App& app);
void add_neighbours(CLI::App& app);
void add_serve(CLI::App& app);
void add_tune_tree(CLI::App& app);
// These describe all commands, so they are added last.
void add_help(CLI::App& app);
void add_completion(CLI::App& app);
void add_man(CLI::App& app);

}  // namespace lamplighter::cli

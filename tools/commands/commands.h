#pragma once

#include <CLI/CLI.hpp>

namespace lamplighter::cli {

// Each adds one subcommand; its work runs as the subcommand's callback and reports failures by exceptions.
void add_generate(CLI::App& app);
void add_batch(CLI::App& app);
void add_decode(CLI::App& app);
void add_inspect(CLI::App& app);
void add_check(CLI::App& app);
void add_bench(CLI::App& app);
void add_devices(CLI::App& app);
void add_neighbours(CLI::App& app);
void add_serve(CLI::App& app);
void add_tune_tree(CLI::App& app);

}  // namespace lamplighter::cli

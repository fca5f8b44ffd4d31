#pragma once

#include <string>

#include "tools/commands/bench.h"

namespace lamplighter::cli {

// Files that a page shows beside the run.
struct PageFiles {
  Json scores = Json::object(), growth;
};

// Throws Error(ExitCode::input).
PageFiles read_page_files(const BenchFlags& flags);

// The command line with the values that were given, quoted for a shell, without flags for outputs and
// messages.
std::string command_line(const CLI::App& command);

// Throws Error(usage, output) when two outputs have one name, or one cannot be written. Creates nothing.
void check_bench_outputs(const BenchFlags& flags);

// Prints results before writing files, so that a failed write loses no measurement. Throws Error(output).
void give_bench_results(const BenchFlags& flags, const BenchResults& results, const PageFiles& files,
                        Terminal& terminal);

}  // namespace lamplighter::cli

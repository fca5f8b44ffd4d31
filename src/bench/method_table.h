#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lamplighter/bundle.h"
#include "lamplighter/options.h"
#include "tree/tree.h"

// How fast exact methods are with a bundle on a machine: measured by `bench` and `tune-tree`, read by the
// method `auto` of the command line.
namespace lamplighter {

constexpr const char* kAutoMethod = "auto";

// What a table holds for.
struct TableKey {
  std::string manifest_sha256;  // of the bundle's manifest.json, which names every other file by its checksum
  std::string processor;        // name of the CPU or GPU
  std::string dtype;            // of weights, and of caches where they are rounded
  int threads = 0;              // of the CPU; 0: on a GPU
};

// Not resolved: what is left open stays the bundle's choice.
struct TableRow {
  MethodOptions method;
  std::optional<Tree> tree;  // in place of the method's
  double speedup = 0;        // time of ar over its time
};

// Methods measured side by side.
struct TableRun {
  int batch_size = 1;  // pictures drawn together
  std::vector<TableRow> rows;
};

// Whether pictures follow the target's law to the letter.
bool is_exact(const MethodOptions& resolved);

// The first exact method whose drafter the bundle has; empty: it has none.
std::string first_with_drafter(const Manifest& manifest);

// What is taken where nothing is measured: on a CPU, where drafting takes long beside a short window, the one
// that needs no drafter; elsewhere the first whose drafter there is.
MethodOptions default_exact_method(const Manifest& manifest, const std::string& device);

// The file of a table in a folder.
std::string table_path(const std::string& folder, const TableKey& key);

// Puts a run into the table of the folder, which is created where it is missing; runs of other batch sizes
// stay. Trees that have no name are kept in files beside it. Throws Error (output, input).
void save_run(const std::string& folder, const TableKey& key, const TableRun& run);

// The runs of a table; none where there is no file. Throws Error(ExitCode::input) for a damaged one.
std::vector<TableRun> load_runs(const std::string& folder, const TableKey& key);

// The fastest exact method, of the run whose batch size is nearest.
struct FastestMethod {
  TableRow row;
  int batch_size = 1;
};
// None where no exact method was measured. Throws what resolve_method throws.
std::optional<FastestMethod> fastest_exact(const std::vector<TableRun>& runs, int batch_size,
                                           const Manifest& manifest, const std::string& device);

}  // namespace lamplighter

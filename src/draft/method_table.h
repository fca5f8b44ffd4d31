#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lamplighter/bundle.h"
#include "lamplighter/options.h"
#include "tree/tree.h"

// The file with the speeds of methods for a bundle on a machine. `bench` and `tune-tree` write it, the method
// auto reads it (draft/auto.h).
namespace lamplighter {

// A table is valid for these.
struct TableKey {
  std::string manifest_sha256;  // of the bundle's manifest.json, which names every other file by its checksum
  std::string processor;        // name of the CPU or GPU
  std::string dtype;            // of weights, and of caches where they are rounded
  int threads = 0;              // of the CPU; 0: on a GPU
};

// The method is not resolved: what is not set stays the bundle's choice.
struct TableRow {
  MethodOptions method;
  std::optional<Tree> tree;  // in place of the method's
  double speedup = 0;        // time of ar over its time
};

// Methods that were measured together.
struct TableRun {
  int batch_size = 1;  // images generated together
  std::vector<TableRow> rows;
};

// The file of a table in a folder.
std::string table_path(const std::string& folder, const TableKey& key);

// Stores a run in the table and keeps runs of other batch sizes. Creates the folder where it is missing.
// Trees without a name are stored in files beside the table. Throws Error (output, input).
void save_run(const std::string& folder, const TableKey& key, const TableRun& run);

// The runs of a table; none where the file is missing. Throws Error(ExitCode::input) for a damaged file.
std::vector<TableRun> load_runs(const std::string& folder, const TableKey& key);

}  // namespace lamplighter

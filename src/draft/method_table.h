#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
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
  std::string instructions;     // isa_name() of the set that the CPU's kernels use; empty on a GPU
  std::string dtype;            // of weights, and of caches where they are rounded
  int threads = 0;              // of the CPU; 0: on a GPU
};

// The method is not resolved: what is not set stays the bundle's choice.
struct TableRow {
  MethodOptions method;
  std::optional<Tree> tree;  // in place of the method's
  double speedup = 0;        // time of ar over its time
};

// What a cycle costs without a drafter.
struct CycleCost {
  std::int64_t rows = 1;  // of an image: the last token and the drafts
  double ms = 0;
};

// Methods that were measured together.
struct TableRun {
  int batch_size = 1;  // images generated together
  std::vector<TableRow> rows;
  std::vector<CycleCost> costs = {};  // by rows; none where images were generated
  bool is_trial = false;              // speed-ups are expected ones (measure/trial.h)
};

// The file of a table in a folder.
std::string table_path(const std::string& folder, const TableKey& key);

// Stores a run in the table in place of those with its batch size and kind. A trial stays beside a run of
// generated images, because it has the costs. Creates the folder where it is missing.
// Trees without a name are stored in files beside the table. Throws Error (output, input).
void save_run(const std::string& folder, const TableKey& key, const TableRun& run);

// A table in a folder.
struct SavedTable {
  TableKey key;
  std::vector<TableRun> runs;
};
Json to_json(const SavedTable& table);
// The tables for a bundle, of all machines. Leaves out damaged files.
std::vector<SavedTable> tables_of(const std::string& folder, const std::string& manifest_sha256);

// The runs of a table; none where the file is missing. Throws Error(ExitCode::input) for a damaged file.
std::vector<TableRun> load_runs(const std::string& folder, const TableKey& key);

}  // namespace lamplighter

#include "draft/method_table.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/create_folder.h"
#include "base/durable.h"
#include "base/files.h"
#include "base/json.h"
#include "base/sha256.h"
#include "draft/options/options.h"
#include "draft/options/resolve.h"
#include "lamplighter/error.h"
#include "lamplighter/version.h"

namespace lamplighter {
namespace {

constexpr int kSchema = 1;
constexpr int kMostImages = 1 << 20;

Json to_json(const TableKey& key) {
  return {{"manifest_sha256", key.manifest_sha256},
          {"processor", key.processor},
          {"dtype", key.dtype},
          {"threads", key.threads}};
}

Json to_json(const TableRun& run) {
  Json rows = Json::array();
  for (const TableRow& row : run.rows) {
    Json json{{"method", row.method.method}, {"speedup", row.speedup}};
    write_options(row.method, json);
    rows.push_back(std::move(json));
  }
  return {{"batch_size", run.batch_size}, {"methods", std::move(rows)}};
}

TableRun read_run(JsonReader& reader) {
  TableRun run;
  run.batch_size = static_cast<int>(reader.integer("batch_size", 1, kMostImages));
  for (JsonReader& row : reader.objects("methods")) {
    MethodOptions method = read_options(row);
    method.method = row.text("method");
    const double speedup = row.number("speedup");
    if (speedup <= 0) row.reject("speedup", "more than 0");
    row.finish();
    run.rows.push_back({std::move(method), std::nullopt, speedup});
  }
  reader.finish();
  return run;
}

// Each process writes under a name of its own.
void publish(const std::string& path, const std::string& text) {
  publish_file(path, path + "." + std::to_string(::getpid()), text);
}

// A damaged table is replaced.
std::vector<TableRun> other_runs(const std::string& folder, const TableKey& key, int batch_size) {
  std::vector<TableRun> runs;
  try {
    runs = load_runs(folder, key);
  } catch (const Error&) {
    return {};
  }
  runs.erase(std::remove_if(runs.begin(), runs.end(),
                            [&](const TableRun& run) { return run.batch_size == batch_size; }),
             runs.end());
  return runs;
}

// Stores a tree and returns its path.
std::string keep_tree(const std::string& folder, const Tree& tree) {
  const std::string text = tree_to_json(tree).dump() + "\n";
  const std::string name = "tree-" + Sha256::of(text).substr(0, 16) + ".json";
  const std::string path = std::filesystem::absolute(join_path(folder, name)).string();
  publish(path, text);
  return path;
}

// The method with a tree whose file does not go away.
MethodOptions keep(const std::string& folder, const TableRow& row) {
  MethodOptions method = row.method;
  const bool named = method.tree.empty() || method.tree == kDynamicTree || is_tree_preset(method.tree);
  if (row.tree || !named) method.tree = keep_tree(folder, row.tree ? *row.tree : load_tree(method.tree));
  return method;
}

}  // namespace

std::string table_path(const std::string& folder, const TableKey& key) {
  return join_path(folder, "methods-" + Sha256::of(to_json(key).dump()).substr(0, 16) + ".json");
}

void save_run(const std::string& folder, const TableKey& key, const TableRun& run) {
  create_folder(folder);
  TableRun kept = run;
  for (TableRow& row : kept.rows) row.method = keep(folder, row);
  const FileLock lock = FileLock::wait(join_path(folder, "lock"));
  Json runs = Json::array();
  for (const TableRun& other : other_runs(folder, key, run.batch_size)) runs.push_back(to_json(other));
  runs.push_back(to_json(kept));
  const Json table{{"schema", kSchema}, {"version", kVersion}, {"for", to_json(key)}, {"runs", runs}};
  publish(table_path(folder, key), table.dump(1) + "\n");
}

std::vector<TableRun> load_runs(const std::string& folder, const TableKey& key) {
  const std::string path = table_path(folder, key);
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return {};
  const Json json = parse_json(read_file(path), path, ExitCode::input);
  JsonReader reader(json, path, ExitCode::input);
  reader.integer("schema", kSchema, kSchema);
  reader.text("version");
  if (reader.value("for") != to_json(key)) reader.reject("for", "this bundle and machine");
  std::vector<TableRun> runs;
  for (JsonReader& run : reader.objects("runs")) runs.push_back(read_run(run));
  reader.finish();
  return runs;
}

}  // namespace lamplighter

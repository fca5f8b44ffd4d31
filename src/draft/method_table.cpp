#include "draft/method_table.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

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

constexpr int kSchema = 2;
constexpr int kMostImages = 1 << 20;
constexpr int kMostThreads = 1 << 16;

Json to_json(const TableKey& key) {
  return {{"manifest_sha256", key.manifest_sha256},
          {"processor", key.processor},
          {"instructions", key.instructions},
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
  Json json{{"batch_size", run.batch_size}, {"methods", std::move(rows)}};
  if (!run.is_trial) return json;
  Json costs = Json::array();
  for (const CycleCost& cost : run.costs) costs.push_back({{"rows", cost.rows}, {"ms", cost.ms}});
  json["cycle_costs"] = std::move(costs);
  return json;
}

TableKey read_key(JsonReader reader) {
  TableKey key;
  key.manifest_sha256 = reader.text("manifest_sha256");
  key.processor = reader.text("processor");
  key.instructions = reader.text("instructions");
  key.dtype = reader.text("dtype");
  key.threads = static_cast<int>(reader.integer("threads", 0, kMostThreads));
  reader.finish();
  return key;
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
  run.is_trial = reader.has("cycle_costs");
  if (run.is_trial) {
    for (JsonReader& cost : reader.objects("cycle_costs")) {
      run.costs.push_back({cost.integer("rows", 1, kMaxTreeNodes), cost.number("ms")});
      if (run.costs.back().ms <= 0) cost.reject("ms", "more than 0");
      cost.finish();
    }
  }
  reader.finish();
  return run;
}

SavedTable read_table(const std::string& path) {
  const Json json = parse_json(read_file(path), path, ExitCode::input);
  JsonReader reader(json, path, ExitCode::input);
  reader.integer("schema", kSchema, kSchema);
  reader.text("version");
  SavedTable table{read_key(reader.object("for")), {}};
  for (JsonReader& run : reader.objects("runs")) table.runs.push_back(read_run(run));
  reader.finish();
  return table;
}

// Each process writes under a name of its own.
void publish(const std::string& path, const std::string& text) {
  publish_file(path, path + "." + std::to_string(::getpid()), text);
}

// A damaged table is replaced.
std::vector<TableRun> other_runs(const std::string& folder, const TableKey& key, const TableRun& run) {
  std::vector<TableRun> runs;
  try {
    runs = load_runs(folder, key);
  } catch (const Error&) {
    return {};
  }
  runs.erase(std::remove_if(runs.begin(), runs.end(),
                            [&](const TableRun& other) {
                              return other.batch_size == run.batch_size && other.is_trial == run.is_trial;
                            }),
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
  for (const TableRun& other : other_runs(folder, key, run)) runs.push_back(to_json(other));
  runs.push_back(to_json(kept));
  const Json table{{"schema", kSchema}, {"version", kVersion}, {"for", to_json(key)}, {"runs", runs}};
  publish(table_path(folder, key), table.dump(1) + "\n");
}

std::vector<TableRun> load_runs(const std::string& folder, const TableKey& key) {
  const std::string path = table_path(folder, key);
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return {};
  SavedTable table = read_table(path);
  if (to_json(table.key) != to_json(key))
    throw Error(ExitCode::input, path + ": for: got another one, expected this bundle and machine");
  return std::move(table.runs);
}

Json to_json(const SavedTable& table) {
  Json runs = Json::array();
  for (const TableRun& run : table.runs) runs.push_back(to_json(run));
  return {{"for", to_json(table.key)}, {"runs", runs}};
}

std::vector<SavedTable> tables_of(const std::string& folder, const std::string& manifest_sha256) {
  std::vector<SavedTable> tables;
  std::error_code ignored;
  std::set<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.rfind("methods-", 0) == 0 && entry.path().extension() == ".json")
      paths.insert(entry.path().string());
  }
  for (const std::string& path : paths) {
    try {
      SavedTable table = read_table(path);
      if (table.key.manifest_sha256 == manifest_sha256) tables.push_back(std::move(table));
    } catch (const Error&) {
      continue;
    }
  }
  return tables;
}

}  // namespace lamplighter

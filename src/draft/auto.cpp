#include "draft/auto.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "acceptance/rules.h"
#include "base/files.h"
#include "base/format.h"
#include "base/message.h"
#include "base/suggestion.h"
#include "device/devices.h"
#include "device/machine.h"
#include "draft/options/options.h"
#include "draft/registry.h"
#include "kernels/common/isa.h"
#include "lamplighter/error.h"

namespace lamplighter {
namespace {

// This program's folder by the XDG Base Directory Specification; empty where the user has none.
std::string cache_folder() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  const std::string given = variable("XDG_CACHE_HOME"), home = variable("HOME");
  if (!given.empty() && given.front() == '/') return join_path(given, "lamplighter");
  return home.empty() ? "" : join_path(home, ".cache/lamplighter");
}

Error no_cache_folder(const std::string& where = "") {
  return {ExitCode::output, where + "got neither HOME nor XDG_CACHE_HOME, expected one of them"};
}

std::string kind_of(const Placement& placement) {
  return placement.device.is_cpu() ? "cpu" : "cuda";
}

std::string checksum_of(const Manifest& manifest) {
  return sha256_file(join_path(manifest.directory, "manifest.json"), ExitCode::bundle);
}

TableKey key_of(const Manifest& manifest, const Placement& placement) {
  TableKey key = machine_key(placement);
  key.manifest_sha256 = checksum_of(manifest);
  return key;
}

}  // namespace

bool is_lossless(const MethodOptions& resolved) {
  if (find_method(resolved.method).is_row_parallel()) return false;
  if (find_method(resolved.method).is_continuous()) return resolved.rule == "exact";
  return resolved.rule.empty() || !traits_of(rule_from(resolved.rule)).lossy();
}

std::optional<FastestMethod> fastest_lossless(const std::vector<TableRun>& runs, int batch_size,
                                              const Manifest& manifest, const std::string& device) {
  const auto distance = [&](const TableRun& run) {
    return std::pair(std::abs(std::log2(static_cast<double>(run.batch_size) / batch_size)), run.is_trial);
  };
  const auto nearest = std::min_element(
      runs.begin(), runs.end(),
      [&](const TableRun& left, const TableRun& right) { return distance(left) < distance(right); });
  if (nearest == runs.end() || distance(*nearest).first > 1) return std::nullopt;
  FastestMethod best{{{}, std::nullopt, 1}, nearest->batch_size, nearest->is_trial};
  for (const TableRow& row : nearest->rows) {
    if (row.speedup > std::max(best.row.speedup, kLeastSpeedup) &&
        is_lossless(resolve_method(row.method, manifest, device, batch_size)))
      best.row = row;
  }
  return best;
}

bool is_auto(const MethodOptions& wanted) {
  if (wanted.method != kAutoMethod) {
    std::vector<std::string> known;
    for (const MethodEntry& method : methods()) known.emplace_back(method.name);
    if (std::find(known.begin(), known.end(), wanted.method) != known.end()) return false;
    throw Error(ExitCode::usage, "method: got " + quote(wanted.method) + ", expected " + list_of(known) +
                                     " or " + kAutoMethod + did_you_mean(wanted.method, known));
  }
  for (const MethodOption& option : method_options()) {
    if (is_set(wanted, option))
      throw Error(
          ExitCode::usage,
          std::string(option.key) + ": method auto chooses its own options; name a method to set this one");
  }
  return true;
}

std::vector<TableRun> saved_runs(const Manifest& manifest, const Placement& placement,
                                 const LogCallback& note) {
  const std::string folder = cache_folder();
  if (folder.empty()) return {};
  try {
    return load_runs(folder, key_of(manifest, placement));
  } catch (const Error& error) {
    if (note) note("note: the table of methods is ignored: " + std::string(error.what()));
    return {};
  }
}

TableKey machine_key(const Placement& placement) {
  const bool is_cpu = placement.device.is_cpu();
  return {"", is_cpu ? cpu_name() : device_name(placement.device), is_cpu ? isa_name(active_isa()) : "",
          dtype_name(placement) + (placement.rounded_cache ? ", caches in int8" : ""),
          is_cpu ? at::get_num_threads() : 0};
}

std::string words_of(const TableKey& key) {
  return key.processor + (key.instructions.empty() ? "" : " (" + key.instructions + ")") + ", " + key.dtype +
         (key.threads > 0 ? ", " + counted(key.threads, "thread") : "");
}

std::string words_of(const MethodOptions& method) {
  std::string text = method.method;
  Json options = Json::object();
  write_options(method, options);
  for (const auto& [key, value] : options.items())
    text += " " + key + "=" + (value.is_string() ? value.get<std::string>() : value.dump());
  return text;
}

std::vector<SavedTable> saved_tables(const Manifest& manifest) {
  const std::string folder = cache_folder();
  if (folder.empty()) return {};
  return tables_of(folder, checksum_of(manifest));
}

void require_cache_folder() {
  if (cache_folder().empty()) throw no_cache_folder("--save-table: ");
  // Created to see that it can be, and removed again: a run that is refused leaves nothing.
  std::error_code error, ignored;
  std::vector<std::filesystem::path> missing;
  for (std::filesystem::path folder = cache_folder();
       !folder.empty() && !std::filesystem::exists(folder, ignored); folder = folder.parent_path())
    missing.push_back(folder);
  std::filesystem::create_directories(cache_folder(), error);
  for (const std::filesystem::path& folder : missing) std::filesystem::remove(folder, ignored);
  if (error)
    throw Error(ExitCode::output, "--save-table: cannot create folder " + cache_folder() + ": " +
                                      error.message() + "; set XDG_CACHE_HOME to another one");
}

void save_table(const Manifest& manifest, const Placement& placement, const TableRun& run,
                const LogCallback& note) {
  TableRun exact = run;
  exact.rows.clear();
  for (const TableRow& row : run.rows) {
    if (is_lossless(resolve_method(row.method, manifest, kind_of(placement), run.batch_size)))
      exact.rows.push_back(row);
  }
  const TableKey key = key_of(manifest, placement);
  if (cache_folder().empty()) throw no_cache_folder();
  save_run(cache_folder(), key, exact);
  if (note) note("table for --method auto on " + words_of(key) + ": " + table_path(cache_folder(), key));
}

}  // namespace lamplighter

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
#include "draft/options/resolve.h"
#include "draft/registry.h"
#include "kernels/common/isa.h"
#include "lamplighter/error.h"

namespace lamplighter {
namespace {

void log(const LogCallback& note, const std::string& line) {
  if (note) note(line);
}

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

std::string kind_of(const Placement& placement) {
  return placement.device.is_cpu() ? "cpu" : "cuda";
}

TableKey key_of(const Manifest& manifest, const Placement& placement) {
  return {sha256_file(join_path(manifest.directory, "manifest.json"), ExitCode::bundle),
          placement.device.is_cpu() ? cpu_name() : device_name(placement.device),
          dtype_name(placement) + (placement.rounded_cache ? ", caches in int8" : ""),
          placement.device.is_cpu() ? at::get_num_threads() : 0};
}

std::string words_of(const TableKey& key) {
  return key.processor + ", " + key.dtype + (key.threads > 0 ? ", " + counted(key.threads, "thread") : "");
}

std::string words_of(const MethodOptions& method) {
  std::string text = method.method;
  Json options = Json::object();
  write_options(method, options);
  for (const auto& [key, value] : options.items())
    text += " " + key + "=" + (value.is_string() ? value.get<std::string>() : value.dump());
  return text;
}

// The answer of the table; none where the table is missing, empty or damaged.
std::optional<FastestMethod> look_up(const TableKey& key, int batch_size, const Manifest& manifest,
                                     const std::string& device, const LogCallback& note) {
  const std::string folder = cache_folder();
  if (folder.empty()) return std::nullopt;
  try {
    return fastest_lossless(load_runs(folder, key), batch_size, manifest, device);
  } catch (const Error& error) {
    log(note, "note: the table of methods is ignored: " + std::string(error.what()));
    return std::nullopt;
  }
}

}  // namespace

bool is_lossless(const MethodOptions& resolved) {
  if (find_method(resolved.method).is_row_parallel()) return false;
  if (find_method(resolved.method).is_continuous()) return resolved.rule == "exact";
  return resolved.rule.empty() || !traits_of(rule_from(resolved.rule)).lossy();
}

std::string first_with_drafter(const Manifest& manifest) {
  for (const MethodEntry& method : methods()) {
    const bool drafts = method.needs_drafter() && !method.is_continuous();
    if (drafts && !traits_of(method.rule).lossy() && missing_for(method, manifest).empty())
      return method.name;
  }
  return "";
}

MethodOptions default_lossless_method(const Manifest& manifest, const std::string& device) {
  MethodOptions options;
  options.method = device == "cpu" ? "" : first_with_drafter(manifest);
  if (!options.method.empty()) return options;
  // A window pays where a pass over its rows costs little more than one over two: not with AVX2, where bf16
  // is widened.
  const bool pays = device != "cpu" || float_isa() >= Isa::kAvx512;
  const bool fits = missing_for(find_method("sjd"), manifest).empty();
  options.method = pays && fits ? "sjd" : kBaseline;
  return options;
}

std::optional<FastestMethod> fastest_lossless(const std::vector<TableRun>& runs, int batch_size,
                                              const Manifest& manifest, const std::string& device) {
  const auto distance = [&](const TableRun& run) {
    return std::abs(std::log(static_cast<double>(run.batch_size) / batch_size));
  };
  const auto nearest = std::min_element(
      runs.begin(), runs.end(),
      [&](const TableRun& left, const TableRun& right) { return distance(left) < distance(right); });
  std::optional<FastestMethod> best;
  if (nearest == runs.end()) return best;
  for (const TableRow& row : nearest->rows) {
    if (best && row.speedup <= best->row.speedup) continue;
    if (is_lossless(resolve_method(row.method, manifest, device, batch_size)))
      best = FastestMethod{row, nearest->batch_size};
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

MethodOptions choose_method(const MethodOptions& wanted, const Manifest& manifest, const Placement& placement,
                            int batch_size, const LogCallback& note) {
  if (!is_auto(wanted)) return wanted;
  const TableKey key = key_of(manifest, placement);
  const std::optional<FastestMethod> fastest = look_up(key, batch_size, manifest, kind_of(placement), note);
  if (!fastest) {
    const MethodOptions method = default_lossless_method(manifest, kind_of(placement));
    const std::string drafted = first_with_drafter(manifest);
    std::string tried = "sjd:tree=chain-3,sjd:tree=chain-5";
    if (!drafted.empty()) tried = drafted + ":tree=chain-2," + drafted + ":tree=chain-4," + tried;
    log(note, "method auto: " + method.method +
                  ", the default for this bundle, because no measurement was saved for " + words_of(key) +
                  "; to measure the methods: lamplighter bench --save-table --methods " + tried);
    return method;
  }
  log(note, "method auto: " + words_of(fastest->row.method) + ", " + format_fixed(fastest->row.speedup, 2) +
                " times as fast as ar when measured on " + words_of(key) + " at batch size " +
                std::to_string(fastest->batch_size));
  return fastest->row.method;
}

MethodOptions choose_method(const MethodOptions& wanted, const Manifest& manifest,
                            const RuntimeOptions& runtime, std::size_t images, const LogCallback& note) {
  if (!is_auto(wanted)) return wanted;
  RuntimeOptions quiet = runtime;  // the engine reports the device
  quiet.note = {};
  return choose_method(wanted, manifest, resolve_placement(quiet, manifest),
                       batch_of(images, runtime.batch_size), note);
}

void require_cache_folder() {
  if (cache_folder().empty())
    throw Error(ExitCode::output, "--save-table: got neither HOME nor XDG_CACHE_HOME, expected one of them");
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
  TableRun exact{run.batch_size, {}};
  for (const TableRow& row : run.rows) {
    if (is_lossless(resolve_method(row.method, manifest, kind_of(placement), run.batch_size)))
      exact.rows.push_back(row);
  }
  const TableKey key = key_of(manifest, placement);
  save_run(cache_folder(), key, exact);
  log(note, "table for --method auto on " + words_of(key) + ": " + table_path(cache_folder(), key));
}

}  // namespace lamplighter

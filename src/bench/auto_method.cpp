#include "bench/auto_method.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cstdlib>

#include "base/files.h"
#include "base/format.h"
#include "base/message.h"
#include "bench/machine/devices.h"
#include "bench/machine/environment.h"
#include "lamplighter/error.h"
#include "propose/options/options.h"
#include "propose/registry.h"

namespace lamplighter {
namespace {

void tell(const NoteCallback& note, const std::string& line) {
  if (note) note(line);
}

// Of this program, as the XDG Base Directory Specification has it; empty where the user has none.
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
          placement.device.is_cpu() ? read_environment("", Nvml("")).cpu : device_name(placement.device),
          dtype_name(placement) + (placement.rounded_cache ? ", caches in int8" : ""),
          placement.device.is_cpu() ? at::get_num_threads() : 0};
}

std::string words_of(const TableKey& key) {
  return key.processor + ", " + key.dtype +
         (key.threads > 0 ? ", " + std::to_string(key.threads) + (key.threads == 1 ? " thread" : " threads")
                          : "");
}

std::string words_of(const MethodOptions& method) {
  std::string text = method.method;
  Json options = Json::object();
  write_options(method, options);
  for (const auto& [key, value] : options.items())
    text += " " + key + "=" + (value.is_string() ? value.get<std::string>() : value.dump());
  return text;
}

// What the table says, in the words of a line; none where it says nothing that can be used.
std::optional<FastestMethod> look_up(const TableKey& key, int batch_size, const Manifest& manifest,
                                     const std::string& device, const NoteCallback& note) {
  const std::string folder = cache_folder();
  if (folder.empty()) return std::nullopt;
  try {
    return fastest_exact(load_runs(folder, key), batch_size, manifest, device);
  } catch (const Error& error) {
    tell(note, "note: the table of methods is ignored: " + std::string(error.what()));
    return std::nullopt;
  }
}

}  // namespace

MethodOptions choose_method(const MethodOptions& wanted, const Manifest& manifest,
                            const RuntimeOptions& runtime, std::size_t pictures, const NoteCallback& note) {
  if (wanted.method != kAutoMethod) {
    const auto is_wanted = [&](const MethodEntry& method) { return wanted.method == method.name; };
    if (std::any_of(methods().begin(), methods().end(), is_wanted)) return wanted;
    throw Error(ExitCode::usage, "method: got " + quote(wanted.method) + ", expected " + method_names() +
                                     " or " + kAutoMethod);
  }
  for (const MethodOption& option : method_options()) {
    if (is_set(wanted, option))
      throw Error(ExitCode::usage,
                  std::string(option.key) + ": method auto takes it from its table; name a method for this");
  }
  RuntimeOptions quiet = runtime;  // the engine tells of the device
  quiet.note = {};
  const Placement placement = resolve_placement(quiet, manifest);
  const int batch_size = static_cast<int>(std::min<std::size_t>(
      std::max<std::size_t>(1, pictures), static_cast<std::size_t>(runtime.batch_size)));
  const TableKey key = key_of(manifest, placement);
  const std::optional<FastestMethod> fastest = look_up(key, batch_size, manifest, kind_of(placement), note);
  if (!fastest) {
    const MethodOptions method = default_exact_method(manifest, kind_of(placement));
    const std::string drafted = first_with_drafter(manifest);
    std::string tried = "sjd:tree=chain-3,sjd:tree=chain-5";
    if (!drafted.empty()) tried = drafted + ":tree=chain-2," + drafted + ":tree=chain-4," + tried;
    tell(note, "method auto: " + method.method + ", the exact method of this bundle by default; for " +
                   words_of(key) + " no table says which is fastest: make one with lamplighter bench " +
                   "--save-table --methods " + tried);
    return method;
  }
  tell(note, "method auto: " + words_of(fastest->row.method) + ", " + format_fixed(fastest->row.speedup, 2) +
                 " times as fast as ar when measured on " + words_of(key) +
                 ", pictures together: " + std::to_string(fastest->batch_size));
  return fastest->row.method;
}

void require_cache_folder() {
  if (cache_folder().empty())
    throw Error(ExitCode::output, "--save-table: got neither HOME nor XDG_CACHE_HOME, expected one of them");
}

void save_table(const Manifest& manifest, const Placement& placement, const TableRun& run,
                const NoteCallback& note) {
  TableRun exact{run.batch_size, {}};
  for (const TableRow& row : run.rows) {
    if (is_exact(resolve_method(row.method, manifest, kind_of(placement), run.batch_size)))
      exact.rows.push_back(row);
  }
  const TableKey key = key_of(manifest, placement);
  save_run(cache_folder(), key, exact);
  tell(note, "table for --method auto on " + words_of(key) + ": " + table_path(cache_folder(), key));
}

}  // namespace lamplighter

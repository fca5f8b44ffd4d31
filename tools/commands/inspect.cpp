#include <algorithm>
#include <memory>
#include <utility>

#include "base/files.h"
#include "base/format.h"
#include "base/json.h"
#include "base/message.h"
#include "device/placement.h"
#include "draft/auto.h"
#include "lamplighter/bundle.h"
#include "tools/bundle_facts.h"
#include "tools/commands/commands.h"
#include "tools/commands/inspect_lines.h"
#include "tools/flags.h"
#include "tools/help.h"
#include "tools/terminal.h"

namespace lamplighter::cli {
namespace {

struct InspectFlags {
  ModelFlags model;
  bool json = false;
};

// Describes the bundle as JSON, with the whole manifest.
Json report(const Manifest& manifest, const Placement& placement) {
  const std::string path = join_path(manifest.directory, "manifest.json");
  const Json stored = parse_json(read_file(path, ExitCode::bundle), path, ExitCode::bundle);
  Json needs = Json::object(), weights = Json::object(), grids = Json::array();
  for (const auto& [method, missing] : method_needs(manifest)) {
    if (!missing.empty()) needs[method] = missing;
  }
  for (const auto& [name, bytes] : weight_bytes(manifest)) weights[name] = bytes;
  for (const Grid& grid : manifest.grids) {
    Json entry{{"width", grid.width},    {"height", grid.height},
               {"rows", grid.rows},      {"columns", grid.columns},
               {"codes", grid.tokens()}, {"row_ends", grid.length() - grid.tokens()}};
    if (manifest.has("target")) {
      const SlotMemory memory = slot_memory(manifest, grid, placement);
      Json drafters = Json::object();
      for (const auto& [name, bytes] : memory.drafters) drafters[name] = bytes;
      entry["guided_slot"] = {
          {"cache_slots", memory.cache_slots}, {"target_bytes", memory.target}, {"drafter_bytes", drafters}};
    }
    grids.push_back(std::move(entry));
  }
  Json tables = Json::array();
  for (const SavedTable& table : saved_tables(manifest)) tables.push_back(to_json(table));
  const SamplingOptions none;
  Json sampling{{"cfg_scale", none.cfg_scale},
                {"temperature", none.temperature},
                {"top_k", none.top_k},
                {"top_p", none.top_p},
                {"order", manifest.sampling_order}};
  if (stored.contains("sampling")) sampling.update(stored.at("sampling"));
  return {{"directory", manifest.directory},
          {"methods", ready_methods(manifest)},
          {"missing", needs},
          {"missing_for_generation", missing_for_generation(manifest)},
          {"weight_bytes", weights},
          {"dtype", dtype_name(placement)},
          {"cache_dtype", cache_dtype_name(placement)},
          {"grids", grids},
          {"sampling", sampling},
          {"measured", tables},
          {"manifest", stored}};
}

void inspect(const InspectFlags& flags) {
  Terminal terminal({});
  const Manifest manifest = read_manifest(flags.model.folder());
  const Damage damage = find_damage(manifest, !flags.model.skip_checksums);
  const Placement placement = resolve_placement(flags.model.runtime, manifest);
  if (flags.json) {
    Json json = report(manifest, placement);
    json["damage"] = damage;
    terminal.result(json.dump(1, ' ', true, Json::error_handler_t::replace));
  } else {
    constexpr std::size_t kLabel = 22;
    for (auto [label, value] : describe_bundle(manifest, damage, placement)) {
      label.resize(std::max(label.size() + 1, kLabel), ' ');
      terminal.result(one_line(label + value));  // names of the bundle may be anything
    }
  }
  if (damage.empty()) return;
  for (const auto& [name, words] : damage)
    terminal.complain(join_path(manifest.directory, name) + ": " + words);
  throw Error(ExitCode::bundle, std::to_string(damage.size()) + " of " +
                                    counted(manifest.files.size(), "file") + " of bundle " +
                                    manifest.directory + " are damaged or missing");
}

}  // namespace

void add_inspect(CLI::App& app) {
  auto flags = std::make_shared<InspectFlags>();
  CLI::App* command = app.add_subcommand("inspect", "Show the contents of a bundle and its methods");
  flags->model.add_model(*command, true);
  flags->model.add_runtime(*command);
  command->remove_option(command->get_option("--threads"));
  common(*command, command->add_flag("--json", flags->json, "Print JSON"));
  add_examples(*command, {{"show the demo bundle", "lamplighter inspect"},
                          {"print JSON for programs", "lamplighter inspect bundles/anole --json"}});
  command->callback([flags] { inspect(*flags); });
}

}  // namespace lamplighter::cli

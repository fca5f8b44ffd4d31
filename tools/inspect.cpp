#include <algorithm>
#include <memory>

#include "base/files.h"
#include "base/json.h"
#include "bundle/codebook.h"
#include "commands.h"
#include "flags.h"
#include "lamplighter/bundle.h"
#include "terminal.h"
#include "tree/tree.h"

namespace lamplighter::cli {
namespace {

struct InspectFlags {
  ModelFlags model;
  bool json = false, skip_checksums = false;
};

std::string list(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text.empty() ? "none" : text;
}

std::string megabytes(std::uint64_t bytes) {
  return format_fixed(static_cast<double>(bytes) / 1e6, 2) + " MB";
}

// Decoding methods that the bundle has everything for; a table of neighbours that is absent is computed.
std::vector<std::string> methods(const Manifest& manifest) {
  if (!missing_for_generation(manifest).empty()) return {};
  if (manifest.drafters.empty()) return {"ar"};
  return {"ar", "eagle", "eagle-2", "lantern", "lantern++"};
}

std::string describe_module(const Manifest& manifest, const ModuleEntry& module) {
  return module.file + ", " + module.dtype + ", " + megabytes(manifest.files.at(module.file).bytes);
}

std::string describe_drafter(const Manifest& manifest, const DrafterEntry& drafter) {
  return describe_module(manifest, drafter.module) + ", " + std::to_string(drafter.layers) + " layers, " +
         std::to_string(drafter.kv_heads) + " heads of " + std::to_string(drafter.head_dim);
}

std::string describe_neighbours(const Manifest& manifest) {
  const NeighbourTable table = read_neighbours(join_path(manifest.directory, *manifest.neighbours),
                                               manifest.tokens.codebook_size, 0, ExitCode::bundle);
  return *manifest.neighbours + ", " + std::to_string(table.width) + " for each of " +
         std::to_string(table.codes) + " codes";
}

std::string describe_tree(const Manifest& manifest, const std::string& file) {
  const std::string path = join_path(manifest.directory, file);
  const Tree tree = parse_tree(read_file(path, ExitCode::bundle), path, ExitCode::bundle);
  return file + ", " + std::to_string(tree.drafted()) + " drafted nodes, depth " +
         std::to_string(tree.max_depth());
}

std::vector<std::string> describe_grids(const Manifest& manifest) {
  std::vector<std::string> grids;
  for (const Grid& grid : manifest.grids) {
    grids.push_back(std::to_string(grid.width) + "x" + std::to_string(grid.height) + " (" +
                    std::to_string(grid.rows) + "x" + std::to_string(grid.columns) + " tokens)");
  }
  return grids;
}

std::string describe_sampling(const SamplingOptions& s) {
  return "cfg-scale " + format_fixed(static_cast<double>(s.cfg_scale), 2) + ", temperature " +
         format_fixed(static_cast<double>(s.temperature), 2) + ", top-k " + std::to_string(s.top_k) +
         ", top-p " + format_fixed(static_cast<double>(s.top_p), 2);
}

// Label and value of every line.
std::vector<std::pair<std::string, std::string>> describe(const Manifest& manifest) {
  std::vector<std::pair<std::string, std::string>> lines{
      {"bundle", manifest.name + " (" + manifest.family + ") in " + manifest.directory},
      {"source", manifest.source},
      {"licence", manifest.licence},
      {"exporter", manifest.exporter_version + ", torch " + manifest.exporter_torch}};
  for (const auto& [name, module] : manifest.modules)
    lines.push_back({name, describe_module(manifest, module)});
  for (const auto& [name, drafter] : manifest.drafters) {
    lines.push_back({"drafter " + name, describe_drafter(manifest, drafter)});
  }
  for (const auto& [device, file] : manifest.trees)
    lines.push_back({"tree " + device, describe_tree(manifest, file)});
  if (manifest.tokenizer) {
    lines.push_back({"tokenizer", manifest.tokenizer->kind + ", at most " +
                                      std::to_string(manifest.tokenizer->max_length) + " ids, cleaning " +
                                      manifest.tokenizer->cleaning});
  }
  if (manifest.neighbours) lines.push_back({"neighbours", describe_neighbours(manifest)});
  if (manifest.golden) {
    lines.push_back({"recorded results", std::to_string(manifest.golden_records.size()) + " calls"});
  }
  if (manifest.has("target")) {
    lines.push_back({"tokens", std::to_string(manifest.tokens.codebook_size) + " codes in a vocabulary of " +
                                   std::to_string(manifest.tokens.vocabulary)});
    lines.push_back({"cache", std::to_string(manifest.cache.layers) + " layers, " +
                                  std::to_string(manifest.cache.kv_heads) + " heads of " +
                                  std::to_string(manifest.cache.head_dim) + ", " +
                                  std::to_string(manifest.cache.max_length) + " rows"});
    lines.push_back({"sampling", describe_sampling(manifest.sampling)});
  }
  if (!manifest.grids.empty()) lines.push_back({"grids", list(describe_grids(manifest))});
  lines.push_back({"methods", list(methods(manifest))});
  const std::vector<std::string> missing = missing_for_generation(manifest);
  if (!missing.empty()) lines.push_back({"missing for generate", list(missing)});
  return lines;
}

void inspect(const InspectFlags& flags) {
  Terminal terminal({});
  const Manifest manifest = read_manifest(flags.model.folder());
  verify_files(manifest, !flags.skip_checksums);
  if (flags.json) {
    const std::string path = join_path(manifest.directory, "manifest.json");
    const Json json{{"directory", manifest.directory},
                    {"methods", methods(manifest)},
                    {"missing_for_generation", missing_for_generation(manifest)},
                    {"manifest", parse_json(read_file(path, ExitCode::bundle), path, ExitCode::bundle)}};
    terminal.result(json.dump(1, ' ', false, Json::error_handler_t::replace));
    return;
  }
  constexpr std::size_t kLabel = 22;
  for (auto [label, value] : describe(manifest)) {
    label.resize(std::max(label.size() + 1, kLabel), ' ');
    terminal.result(label + value);
  }
}

}  // namespace

void add_inspect(CLI::App& app) {
  auto flags = std::make_shared<InspectFlags>();
  CLI::App* command = app.add_subcommand("inspect", "Show what a bundle holds and can do");
  flags->model.add_model(*command, true);
  command->add_flag("--json", flags->json, "Print JSON");
  command->add_flag("--skip-checksums", flags->skip_checksums,
                    "Do not compare the files with their checksums");
  command->callback([flags] { inspect(*flags); });
}

}  // namespace lamplighter::cli

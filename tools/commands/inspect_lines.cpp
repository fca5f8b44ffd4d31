#include "tools/commands/inspect_lines.h"

#include "base/files.h"
#include "base/json.h"
#include "bundle/codebook.h"
#include "propose/registry.h"
#include "tools/bundle_facts.h"
#include "tools/terminal.h"
#include "tree/tree.h"

namespace lamplighter::cli {
namespace {

std::string list(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text.empty() ? "none" : text;
}

std::string megabytes(std::uint64_t bytes) {
  return format_fixed(static_cast<double>(bytes) / 1e6, 2) + " MB";
}

std::string size(const Grid& grid) {
  return std::to_string(grid.width) + "x" + std::to_string(grid.height);
}

std::string list_ids(const std::vector<std::int64_t>& ids) {
  std::string text;
  for (const std::int64_t id : ids) text += (text.empty() ? "" : " ") + std::to_string(id);
  return text.empty() ? "none" : text;
}

// A text on one line.
std::string quote(const std::string& text) {
  return to_text(text);
}

std::string describe_module(const Manifest& manifest, const ModuleEntry& module) {
  return module.file + ", " + module.dtype + ", " + megabytes(manifest.files.at(module.file).bytes);
}

std::string describe_drafter(const Manifest& manifest, const DrafterEntry& drafter) {
  const std::string heads =
      drafter.heads > 0 ? ", heads for " + std::to_string(drafter.heads) + " tokens ahead" : "";
  if (!drafter.has_cache()) return describe_module(manifest, drafter.module) + heads;
  return describe_module(manifest, drafter.module) + heads + ", " + std::to_string(drafter.layers) +
         " layers, " + std::to_string(drafter.kv_heads) + " heads of " + std::to_string(drafter.head_dim);
}

std::string describe_neighbours(const Manifest& manifest, const std::string& file) {
  const NeighbourTable table = read_neighbours(join_path(manifest.directory, file),
                                               manifest.tokens.codebook_size, 0, ExitCode::bundle);
  return file + ", " + std::to_string(table.width) + " for each of " + std::to_string(table.codes) + " codes";
}

std::string describe_tree(const Manifest& manifest, const std::string& file) {
  const std::string path = join_path(manifest.directory, file);
  const Tree tree = parse_tree(read_file(path, ExitCode::bundle), path, ExitCode::bundle);
  return file + ", " + std::to_string(tree.drafted()) + " drafted nodes, depth " +
         std::to_string(tree.max_depth());
}

std::string describe_grid(const Grid& grid) {
  std::string text =
      size(grid) + " (" + std::to_string(grid.rows) + "x" + std::to_string(grid.columns) + " tokens)";
  if (!grid.before.empty()) text += " after " + list_ids(grid.before);
  if (!grid.row_end.empty()) text += ", rows end with " + list_ids(grid.row_end);
  return text;
}

std::string describe_slot(const SlotMemory& memory) {
  std::string text = "target " + megabytes(memory.target);
  for (const auto& [name, bytes] : memory.drafters) text += ", drafter " + name + " " + megabytes(bytes);
  return text + " (" + std::to_string(memory.rows) + " rows)";
}

std::string describe_tokenizer(const TokenizerEntry& tokenizer) {
  return tokenizer.kind + ", at most " + std::to_string(tokenizer.max_length) + " ids" +
         (tokenizer.cleaning.empty() ? "" : ", cleaning " + tokenizer.cleaning);
}

std::string describe_prompt(const PromptEntry& prompt) {
  if (prompt.kind == "class") return "one of " + std::to_string(prompt.classes) + " classes";
  const std::string rows = ", at most " + std::to_string(prompt.length) + " rows";
  if (prompt.kind == "text_features") {
    return "text features of width " + std::to_string(prompt.features) + rows;
  }
  std::string unconditional = list_ids(prompt.unconditional);
  if (prompt.unconditional_pad) {
    unconditional += ", padded with " + std::to_string(*prompt.unconditional_pad) + " to the same length, " +
                     list_ids(prompt.suffix);
  }
  if (prompt.negative_text) {
    unconditional = (prompt.unconditional.empty() ? "" : unconditional + ", ") +
                    quote(*prompt.negative_text) + ", negative prompt: " + quote(prompt.negative_prompt);
  }
  return "tokens: " + list_ids(prompt.prefix) + ", " + quote(prompt.text) + ", " + list_ids(prompt.suffix) +
         "; unconditional: " + unconditional + rows;
}

// Where prompts are ids of the vocabulary, a head over all of it draws text, too.
std::string describe_tokens(const Manifest& manifest) {
  const auto& tokens = manifest.tokens;
  const std::string drawn = std::to_string(tokens.codebook_size);
  if (manifest.prompt && manifest.prompt->kind == "tokens" && tokens.codebook_size == tokens.vocabulary)
    return "all " + drawn + " ids of the vocabulary, those of text among them";
  return drawn + " codes in a vocabulary of " + std::to_string(tokens.vocabulary);
}

// Of the scale of guidance, where it changes.
std::string describe_schedule(const GuidanceSchedule& schedule) {
  if (schedule.kind == "linear") return ", growing from 1 to it";
  if (schedule.kind != "decay") return "";
  return std::string(schedule.raise ? ", raised to " : ", falling to ") + format_fixed(schedule.floor, 2) +
         (schedule.raise ? " or falling to it" : "") + " over " + format_fixed(schedule.share, 2) +
         " of the codes";
}

std::string describe_sampling(const Manifest& manifest) {
  const SamplingOptions& s = manifest.sampling;
  return "cfg-scale " + format_fixed(static_cast<double>(s.cfg_scale), 2) +
         describe_schedule(manifest.schedule) + ", temperature " +
         format_fixed(static_cast<double>(s.temperature), 2) +
         (manifest.is_continuous() ? ""
                                   : ", top-k " + std::to_string(s.top_k) + ", top-p " +
                                         format_fixed(static_cast<double>(s.top_p), 2)) +
         (manifest.sampling_order == "eagle" ? ", top-p before top-k" : "");
}

void describe_files(const Manifest& manifest, const Damage& damage, Lines& lines) {
  // What stands in a file is told where it can be read.
  const auto content = [&](const std::string& file, const auto& tell) {
    return damage.count(file) != 0 ? file : tell(manifest, file);
  };
  for (const auto& [name, module] : manifest.modules)
    lines.emplace_back(name, describe_module(manifest, module));
  for (const auto& [name, drafter] : manifest.drafters)
    lines.emplace_back("drafter " + name, describe_drafter(manifest, drafter));
  std::uint64_t total = 0;
  for (const auto& [name, bytes] : weight_bytes(manifest)) total += bytes;
  lines.emplace_back("weights", megabytes(total) + " in all");
  for (const auto& [device, file] : manifest.trees)
    lines.emplace_back("tree " + device, content(file, describe_tree));
  if (manifest.tokenizer) lines.emplace_back("tokenizer", describe_tokenizer(*manifest.tokenizer));
  if (manifest.neighbours)
    lines.emplace_back("neighbours", content(*manifest.neighbours, describe_neighbours));
  if (manifest.golden)
    lines.emplace_back("recorded results", std::to_string(manifest.golden_records.size()) + " calls");
}

void describe_drawing(const Manifest& manifest, const Placement& placement, Lines& lines) {
  if (manifest.prompt) lines.emplace_back("prompt", describe_prompt(*manifest.prompt));
  if (manifest.prompt && manifest.prompt->vocabulary) {
    for (const auto& [kind, words] : known_words(*manifest.prompt->vocabulary))
      lines.emplace_back("knows " + kind, words);
    lines.emplace_back("example", manifest.prompt->vocabulary->example);
  }
  if (manifest.has("target") && manifest.is_continuous()) {
    lines.emplace_back("tokens", "continuous, " + std::to_string(manifest.tokens.channels) + " channels, " +
                                     std::to_string(manifest.diffusion.steps) + " denoising steps (" +
                                     manifest.diffusion.respacing + ")");
  } else if (manifest.has("target")) {
    lines.emplace_back("tokens", describe_tokens(manifest));
    lines.emplace_back("cache", std::to_string(manifest.cache.layers) + " layers, " +
                                    std::to_string(manifest.cache.kv_heads) + " heads of " +
                                    std::to_string(manifest.cache.head_dim) + ", " +
                                    std::to_string(manifest.cache.max_length) + " rows");
  }
  if (manifest.has("target")) lines.emplace_back("sampling", describe_sampling(manifest));
  const char* label = "grids";
  for (const Grid& grid : manifest.grids) lines.emplace_back(std::exchange(label, ""), describe_grid(grid));
  if (!manifest.has("target")) return;
  lines.emplace_back("memory", manifest.is_continuous()
                                   ? "at least, of a guided picture in a pass without drafts:"
                                   : "caches of a guided picture in " + cache_dtype_name(placement) +
                                         ", without draft trees:");
  for (const Grid& grid : manifest.grids)
    lines.emplace_back("", size(grid) + ": " + describe_slot(slot_memory(manifest, grid, placement)));
}

void describe_methods(const Manifest& manifest, Lines& lines) {
  lines.emplace_back("methods", list(ready_methods(manifest)));
  if (manifest.has("target") && !manifest.is_continuous()) {
    std::vector<std::string> older;
    for (const MethodEntry& method : methods()) {
      if (!has_calls(method, manifest)) older.emplace_back(method.name);
    }
    if (!older.empty()) lines.emplace_back("", list(older) + " after a new export of the target");
  }
  const std::vector<std::string> missing = missing_for_generation(manifest);
  if (!missing.empty()) {
    lines.emplace_back("missing for generate", list(missing));
  } else if (manifest.is_continuous() && manifest.drafters.empty()) {
    lines.emplace_back("", "cspd needs a drafter (python -m models.export mar --drafter)");
  } else if (manifest.drafters.empty()) {
    std::vector<std::string> others;
    for (const MethodEntry& method : methods()) {
      if (method.needs_drafter() && !method.is_continuous()) others.emplace_back(method.name);
    }
    lines.emplace_back("", list(others) + " need a drafter (python -m models.export drafter)");
  }
}

}  // namespace

Lines describe_bundle(const Manifest& manifest, const Damage& damage, const Placement& placement) {
  Lines lines{{"bundle", manifest.name + " (" + manifest.family + ") in " + manifest.directory},
              {"source", manifest.source},
              {"licence", manifest.licence},
              {"exporter", manifest.exporter_version + ", torch " + manifest.exporter_torch}};
  describe_files(manifest, damage, lines);
  describe_drawing(manifest, placement, lines);
  describe_methods(manifest, lines);
  return lines;
}

}  // namespace lamplighter::cli

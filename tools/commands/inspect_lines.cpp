#include "tools/commands/inspect_lines.h"

#include <algorithm>

#include "base/files.h"
#include "base/format.h"
#include "base/json.h"
#include "bundle/codebook.h"
#include "draft/auto.h"
#include "draft/registry.h"
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
  return sides(grid.width, grid.height);
}

std::string list_ids(const std::vector<std::int64_t>& ids) {
  std::string text;
  for (const std::int64_t id : ids) text += (text.empty() ? "" : " ") + std::to_string(id);
  return text.empty() ? "none" : text;
}

// Quotes a text on one line.
std::string quote(const std::string& text) {
  return to_text(text);
}

std::string describe_module(const Manifest& manifest, const ModuleEntry& module) {
  return module.file + ", " + module.dtype + ", " + megabytes(manifest.files.at(module.file).bytes);
}

std::string describe_drafter(const Manifest& manifest, const DraftModelEntry& drafter) {
  const std::string heads =
      drafter.heads > 0 ? ", heads for " + counted(drafter.heads, "token") + " ahead" : "";
  if (!draft_kind(drafter).has(kDraftCache)) return describe_module(manifest, drafter.module) + heads;
  return describe_module(manifest, drafter.module) + heads + ", " + counted(drafter.layers, "layer") + ", " +
         counted(drafter.kv_heads, "head") + " of " + std::to_string(drafter.head_dim);
}

std::string describe_neighbours(const Manifest& manifest, const std::string& file) {
  const NeighbourTable table = read_neighbours(join_path(manifest.directory, file),
                                               manifest.tokens.codebook_size, 0, ExitCode::bundle);
  return file + ", " + std::to_string(table.width) + " for each of " + counted(table.codes, "code");
}

std::string describe_tree(const Manifest& manifest, const std::string& file) {
  const std::string path = join_path(manifest.directory, file);
  const Tree tree = parse_tree(read_file(path, ExitCode::bundle), path, ExitCode::bundle);
  return file + ", " + counted(tree.drafted(), "drafted node") + ", depth " +
         std::to_string(tree.max_depth());
}

std::string describe_grid(const Grid& grid) {
  std::string text =
      size(grid) + " (" + std::to_string(grid.rows) + "x" + counted(grid.columns, "token") + ")";
  if (!grid.before.empty()) text += " after " + list_ids(grid.before);
  if (grid.preview_tokens() > 0)
    text += " behind a preview (" + std::to_string(grid.preview_rows) + "x" +
            counted(grid.preview_columns, "token") + ")";
  if (!grid.row_end.empty()) text += ", rows end with " + list_ids(grid.row_end);
  return text;
}

std::string describe_slot(const SlotMemory& memory) {
  std::string text = "target " + megabytes(memory.target);
  for (const auto& [name, bytes] : memory.drafters) text += ", drafter " + name + " " + megabytes(bytes);
  return text + " (" + counted(memory.cache_slots, "cache slot") + ")";
}

std::string describe_tokenizer(const TokenizerEntry& tokenizer) {
  return tokenizer.kind + ", at most " + counted(tokenizer.max_length, "id") +
         (tokenizer.cleaning.empty() ? "" : ", cleaning " + tokenizer.cleaning);
}

std::string describe_prompt(const PromptEntry& prompt) {
  if (prompt.kind == "class") return "one of " + counted(prompt.classes, "class");
  const std::string limit = ", at most " + counted(prompt.length, "position");
  if (prompt.kind == "text_features") {
    return "text features of width " + std::to_string(prompt.features) + limit;
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
         "; unconditional: " + unconditional + limit;
}

// Where prompts are ids of the vocabulary, a head over the whole vocabulary also samples text ids.
std::string describe_tokens(const Manifest& manifest) {
  const auto& tokens = manifest.tokens;
  const std::string count = std::to_string(tokens.codebook_size);
  if (manifest.prompt && manifest.prompt->kind == "tokens" && tokens.codebook_size == tokens.vocabulary)
    return "all " + count + " ids of the vocabulary, text included";
  return count + " codes in a vocabulary of " + std::to_string(tokens.vocabulary);
}

// Describes how the guidance scale changes within an image.
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
  // Contents are shown for undamaged files only.
  const auto content = [&](const std::string& file, const auto& describe) {
    return damage.count(file) != 0 ? file : describe(manifest, file);
  };
  for (const auto& [name, module] : manifest.modules)
    lines.emplace_back(name, describe_module(manifest, module));
  for (const auto& [name, drafter] : manifest.all_drafters()) {
    const char* const of = manifest.drafters.count(name) != 0 ? "" : ", of texts";
    lines.emplace_back("drafter " + name, describe_drafter(manifest, drafter) + of);
  }
  std::uint64_t total = 0;
  for (const auto& [name, bytes] : weight_bytes(manifest)) total += bytes;
  lines.emplace_back("weights", megabytes(total) + " in all");
  for (const auto& [device, file] : manifest.trees)
    lines.emplace_back("tree " + device, content(file, describe_tree));
  if (manifest.tokenizer) lines.emplace_back("tokenizer", describe_tokenizer(*manifest.tokenizer));
  if (manifest.neighbours)
    lines.emplace_back("neighbours", content(*manifest.neighbours, describe_neighbours));
  if (manifest.golden)
    lines.emplace_back("recorded results", counted(manifest.golden_records.size(), "call"));
}

void describe_generating(const Manifest& manifest, const Placement& placement, Lines& lines) {
  if (manifest.prompt) lines.emplace_back("prompt", describe_prompt(*manifest.prompt));
  if (manifest.prompt && manifest.prompt->vocabulary) {
    for (const auto& [kind, words] : known_words(*manifest.prompt->vocabulary))
      lines.emplace_back("knows " + kind, words);
    lines.emplace_back("example", manifest.prompt->vocabulary->example);
  }
  if (manifest.has("target") && manifest.is_continuous()) {
    lines.emplace_back("tokens", "continuous, " + counted(manifest.tokens.channels, "channel") + ", " +
                                     counted(manifest.diffusion.steps, "denoising step") + " (" +
                                     manifest.diffusion.respacing + ")");
  } else if (manifest.has("target")) {
    lines.emplace_back("tokens", describe_tokens(manifest));
    lines.emplace_back("cache", counted(manifest.cache.layers, "layer") + ", " +
                                    counted(manifest.cache.kv_heads, "head") + " of " +
                                    std::to_string(manifest.cache.head_dim) + ", " +
                                    counted(manifest.cache.max_length, "slot"));
  }
  if (manifest.has("target")) lines.emplace_back("sampling", describe_sampling(manifest));
  if (manifest.text) {
    const SamplingOptions& sampling = manifest.text->sampling;
    lines.emplace_back("texts", "about images, " + counted(manifest.text->length, "position") +
                                    " for all, temperature " +
                                    format_fixed(static_cast<double>(sampling.temperature), 2) + ", top-p " +
                                    format_fixed(static_cast<double>(sampling.top_p), 2));
  }
  const char* label = "grids";
  for (const Grid& grid : manifest.grids) lines.emplace_back(std::exchange(label, ""), describe_grid(grid));
  if (!manifest.has("target")) return;
  lines.emplace_back("memory", manifest.is_continuous()
                                   ? "for a pass of a guided image without drafts, at least:"
                                   : "caches of a guided image in " + cache_dtype_name(placement) +
                                         ", without draft trees:");
  for (const Grid& grid : manifest.grids)
    lines.emplace_back("", size(grid) + ": " + describe_slot(slot_memory(manifest, grid, placement)));
}

// The methods that lack a drafter alone, and the commands that attach one.
void describe_drafted(const Manifest& manifest, Lines& lines) {
  std::vector<std::string> names, exporters;
  for (const MethodEntry& method : methods()) {
    if (missing_for(method, manifest) != std::vector<std::string>{"drafters"}) continue;
    const char* const exporter = draft_kind(*method.drafter).exporter;
    names.emplace_back(method.name);
    if (std::find(exporters.begin(), exporters.end(), exporter) == exporters.end())
      exporters.emplace_back(exporter);
  }
  if (names.empty()) return;
  lines.emplace_back("", list(names) + (names.size() == 1 ? " needs" : " need") +
                             " a drafter (lamplighter-export " + list(exporters) + ")");
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
  describe_drafted(manifest, lines);
  const std::vector<std::string> missing = missing_for_generation(manifest);
  if (!missing.empty()) {
    const bool has_codes = missing_for_tokens(manifest).empty();
    lines.emplace_back(has_codes ? "missing for images" : "missing for generate", list(missing));
    if (has_codes) lines.emplace_back("", "generate --save-codes FILE writes the codes of images");
  }
}

std::string describe_run(const TableRun& run) {
  std::string text = "batch size " + std::to_string(run.batch_size) + (run.is_trial ? ", expected:" : ":");
  for (const TableRow& row : run.rows) {
    if (row.method.method == kBaseline) continue;
    text += (text.back() == ':' ? " " : ", ") + words_of(row.method) + " " + format_fixed(row.speedup, 2) +
            " times as fast as ar";
  }
  if (run.costs.empty()) return text;
  text += "; ms of a cycle by rows:";
  for (const CycleCost& cost : run.costs)
    text += " " + std::to_string(cost.rows) + ":" + format_fixed(cost.ms, 2);
  return text;
}

void describe_tables(const Manifest& manifest, Lines& lines) {
  for (const SavedTable& table : saved_tables(manifest)) {
    lines.emplace_back("measured", words_of(table.key));
    for (const TableRun& run : table.runs) lines.emplace_back("", describe_run(run));
  }
}

}  // namespace

Lines describe_bundle(const Manifest& manifest, const Damage& damage, const Placement& placement) {
  Lines lines{{"bundle", manifest.name + " (" + manifest.family + ") in " + manifest.directory},
              {"source", manifest.source},
              {"licence", manifest.licence},
              {"exporter", manifest.exporter_version + ", torch " + manifest.exporter_torch}};
  describe_files(manifest, damage, lines);
  describe_generating(manifest, placement, lines);
  describe_methods(manifest, lines);
  describe_tables(manifest, lines);
  return lines;
}

}  // namespace lamplighter::cli

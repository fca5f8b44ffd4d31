#include <algorithm>
#include <memory>

#include "base/files.h"
#include "base/stopwatch.h"
#include "base/suggestion.h"
#include "bundle/codebook.h"
#include "bundle/manifest/attach.h"
#include "lamplighter/error.h"
#include "tools/commands/commands.h"
#include "tools/flags.h"
#include "tools/help.h"
#include "tools/signals.h"
#include "tools/terminal.h"

namespace lamplighter::cli {
namespace {

constexpr const char* kFile = "neighbours.safetensors";
constexpr std::int64_t kWidth = 1000;

struct NeighbourFlags {
  ModelFlags model;
  LogFlags logging;
  std::optional<std::int64_t> k;
  std::string metric = "l2", from, output;
  bool overwrite = false;
};

// Keeps the first `width` columns.
NeighbourTable narrowed(NeighbourTable table, std::int64_t width) {
  if (table.width <= width) return table;
  NeighbourTable narrow{table.codes, width, {}};
  for (std::int64_t code = 0; code < table.codes; ++code)
    narrow.ids.insert(narrow.ids.end(), table.row(code), table.row(code) + width);
  return narrow;
}

// Makes the table from the codebook or from a file.
NeighbourTable make_table(const NeighbourFlags& flags, const Manifest& manifest, Terminal& terminal) {
  if (!flags.from.empty()) {
    NeighbourTable table =
        read_neighbours(flags.from, manifest.decoder.codebook_size, flags.k.value_or(0), ExitCode::input);
    return narrowed(std::move(table), flags.k.value_or(kWidth));
  }
  const Codebook codebook = read_codebook(manifest);
  const std::int64_t k = std::min(flags.k.value_or(kWidth), codebook.codes - 1);
  return nearest_neighbours(codebook.vectors, codebook.dimension, k, metric_from(flags.metric),
                            [&](std::int64_t done, std::int64_t codes) {
                              terminal.progress(done, codes, "codes");
                              if (stop_signal() != 0)
                                throw Error(ExitCode::interrupted, "stopped: nothing is written");
                            });
}

void check_outputs(const NeighbourFlags& flags, const Manifest& manifest) {
  if (!flags.output.empty()) return check_output(flags.output, flags.overwrite);
  if (manifest.neighbours && !flags.overwrite) {
    throw Error(ExitCode::output, "bundle " + manifest.directory + " has neighbours already (" +
                                      *manifest.neighbours + "); give --overwrite to replace them");
  }
  check_output(join_path(manifest.directory, kFile), true);
  check_output(join_path(manifest.directory, "manifest.json"), true);
}

void check_flags(const NeighbourFlags& flags, const Manifest& manifest, bool metric_given) {
  if (flags.k && *flags.k < 1) {
    throw Error(ExitCode::usage, "--k: got " + std::to_string(*flags.k) + ", expected 1 or more");
  }
  if (!flags.from.empty() && metric_given) {
    throw Error(ExitCode::usage, "--metric and --from exclude each other: a file is already sorted");
  }
  metric_from(flags.metric);
  if (!manifest.has("image_decoder")) {
    throw Error(ExitCode::bundle,
                "bundle " + manifest.directory + " has no codebook: it lacks image_decoder");
  }
  check_outputs(flags, manifest);
}

void neighbours(const NeighbourFlags& flags, bool metric_given) {
  Terminal terminal(flags.logging);
  const Manifest manifest = read_manifest(flags.model.folder());
  check_flags(flags, manifest, metric_given);
  verify_files(manifest, !flags.model.skip_checksums);
  const OrderlyStop orderly;
  Stopwatch watch;
  const NeighbourTable table = make_table(flags, manifest, terminal);
  const std::string bytes = encode_neighbours(table);
  if (flags.output.empty()) {
    attach_file(manifest.directory, kFile, bytes, "/neighbours", {{"file", kFile}});
  } else {
    write_file(flags.output, bytes, flags.overwrite);
  }
  terminal.log("codes: " + std::to_string(table.codes) +
               ", neighbours of each: " + std::to_string(table.width) + ", from " +
               (flags.from.empty() ? "the codebook by " + flags.metric : flags.from) + ", " +
               format_fixed(watch.lap() / 1000, 1) + " s");
  terminal.result(flags.output.empty() ? join_path(manifest.directory, kFile) : flags.output);
}

}  // namespace

void add_neighbours(CLI::App& app) {
  auto flags = std::make_shared<NeighbourFlags>();
  CLI::App* command =
      app.add_subcommand("neighbours", "Store the nearest codes of every code, for lantern and lantern++");
  command->add_option("-m,--bundle,--model", flags->model.model, kModelHelp)
      ->envname("LAMPLIGHTER_MODEL")
      ->type_name("DIR")
      ->default_str(kModelUsual);
  command->add_option("--k", flags->k, "Neighbours of every code")
      ->type_name("K")
      ->default_str("1000, or all other codes if there are fewer");
  with_choices(*command,
               command->add_option("--metric", flags->metric,
                                   "Distance of codebook vectors: " + list_of(metric_names())),
               metric_names())
      ->type_name("NAME")
      ->capture_default_str();
  command->add_option("--from", flags->from, "Read the table from a file (LANTERN's .npy, or safetensors)")
      ->type_name("FILE");
  command->add_option("-o,--output", flags->output, "Write the table to a file instead of into the bundle")
      ->type_name("FILE");
  command->add_flag("--overwrite", flags->overwrite, "Replace an existing table");
  command->add_flag("--skip-checksums", flags->model.skip_checksums, kSkipChecksums);
  flags->logging.add(*command);
  add_examples(
      *command,
      {{"compute the table and store it in the bundle", "lamplighter neighbours --bundle bundles/anole"},
       {"store the official table", "lamplighter neighbours --bundle bundles/anole --from top.npy"}});
  command->callback([flags, command] { neighbours(*flags, command->get_option("--metric")->count() != 0); });
}

}  // namespace lamplighter::cli

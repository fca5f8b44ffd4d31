#include "tools/commands/bench.h"
#include "base/suggestion.h"

#include <algorithm>
#include <memory>
#include <set>

#include "bundle/synthetic/shape.h"
#include "draft/auto.h"
#include "draft/options/options.h"
#include "draft/registry.h"
#include "lamplighter/error.h"
#include "measure/cycles.h"
#include "tools/commands/bench_compare.h"
#include "tools/commands/bench_outputs.h"
#include "tools/commands/bench_startup.h"
#include "tools/commands/commands.h"
#include "tools/help.h"
#include "tools/values.h"

namespace lamplighter::cli {
namespace {

// A measurement that generates no images with a bundle in this process, and the flags that it reads.
struct Kind {
  const char* flag;
  std::set<std::string> known;
  const char* why;
};

const Kind kSynthetic{
    "--synthetic",
    {"--synthetic",       "--layers",      "--accept",     "--clock",    "--tree",        "--methods",
     "--sweep",           "--batch-sizes", "--repeats",    "--json",     "--export-json", "--export-csv",
     "--export-markdown", "--export-html", "--export-svg", "--growth",   "--overwrite",   "--device",
     "--dtype",           "--cache-dtype", "--threads",    "--no-graph", "--quiet",       "--verbose"},
    ": random weights have no bundle and no images"};
const Kind kCompare{
    "--compare", {"--compare", "--json", "--quiet", "--verbose"}, ": files take the place of a run"};
const Kind kStartup{"--startup",
                    {"--startup", "--model", "--prompt", "--repeats", "--json", "--export-json",
                     "--export-markdown", "--overwrite", "--device", "--dtype", "--cache-dtype", "--threads",
                     "--skip-checksums", "--quiet", "--verbose"},
                    ": whole processes are timed"};

// Refuses flags that the measurement would ignore. Values from the environment are not in parse_order().
void check_kind(const CLI::App& command, const Kind& kind) {
  for (const CLI::Option* option : command.parse_order()) {
    const std::string name = option->get_name();
    if (kind.known.count(name) == 0)
      throw Error(ExitCode::usage, name + " and " + kind.flag + " exclude each other" + kind.why);
  }
}

void check_flags(const BenchFlags& flags) {
  const auto positive = [](const char* flag, std::int64_t got) {
    if (got < 1)
      throw Error(ExitCode::usage,
                  std::string(flag) + ": got " + std::to_string(got) + ", expected 1 or more");
  };
  positive("--repeats", flags.repeats.value_or(1));
  positive("--count", static_cast<std::int64_t>(flags.count.value_or(1)));
  for (const int size : flags.batch_sizes) positive("--batch-sizes", size);
  if (std::set<int>(flags.batch_sizes.begin(), flags.batch_sizes.end()).size() < flags.batch_sizes.size())
    throw Error(ExitCode::usage, "--batch-sizes: got a size twice, expected every size once");
  if (flags.warmup < 0)
    throw Error(ExitCode::usage, "--warmup: got " + std::to_string(flags.warmup) + ", expected 0 or more");
  check_bench_outputs(flags);
  if (flags.save_table) require_cache_folder();
}

void add_captions(CLI::App& command, BenchFlags& flags) {
  CLI::Option* captions =
      common(command, command.add_option("--captions", flags.captions.captions,
                                         "Caption set instead of prompts, as for batch; - = standard input"))
          ->type_name("FILE");
  for (const char* other : {"--prompt", "--prompt-file", "--class"})
    captions->excludes(command.get_option(other));
  add_select(command, flags.captions)->needs(captions);
  command.add_option("--offset", flags.captions.offset, "Skip the first N captions")
      ->needs(captions)
      ->type_name("N")
      ->capture_default_str();
  command.add_option("--limit", flags.captions.limit, "Use at most N captions of the set")
      ->needs(captions)
      ->type_name("N")
      ->default_str("all");
}

void add_methods(CLI::App& command, BenchFlags& flags) {
  common(command,
         add_list(command, "--methods", flags.methods,
                  "Methods with options, as in sjd,lantern++:k=10:lambda=3:tree=chain-4; ar is always "
                  "added"))
      ->default_str("sjd, eagle and lantern++ if the bundle supports them; synthetic: eagle");
  with_choices(command, command.get_option("--methods"), method_names());
  add_list(command, "--tree", flags.trees, "Short for --sweep tree=LIST")
      ->default_str("the method's; synthetic: chain-3");
  with_choices(command, command.get_option("--tree"), find_option("tree", "--tree").words);
  common(command, add_list(command, "--sweep", flags.sweep,
                           "Values of options that --methods leaves open: tree=chain-2,chain-4,lambda=2,3 "
                           "measures every combination of the options that a method reads"));
}

void add_measurement(CLI::App& command, BenchFlags& flags) {
  common(command, add_list(command, "--batch-sizes,--batch-size", flags.batch_sizes,
                           "Images generated side by side; every method is measured with each size"))
      ->default_str("1");
  common(command, command.add_option("--repeats", flags.repeats, "Measured rounds over all images"))
      ->type_name("N")
      ->default_str("5 if all images fit into one batch, else 1; synthetic: 12, or what 20 seconds hold");
  command
      .add_option("--warmup", flags.warmup,
                  "Unmeasured batches before the first round, for each method and size")
      ->type_name("N")
      ->capture_default_str();
  command
      .add_option("--count-prompt", flags.count_prompt,
                  "Whether the step compression S counts the prefill pass; some papers do not count it")
      ->type_name("yes|no")
      ->default_str("yes");
  with_choices(command, command.get_option("--count-prompt"), {"yes", "no"});
}

void add_synthetic(CLI::App& command, BenchFlags& flags) {
  CLI::Option* synthetic =
      command
          .add_option("--synthetic", flags.synthetic,
                      "Time cycles with random weights of this shape instead of a bundle: " +
                          list_of(synthetic_names()))
          ->type_name("NAME");
  with_choices(command, synthetic, synthetic_names());
  command.add_option("--layers", flags.layers, "Synthetic: only the first N layers of the target")
      ->needs(synthetic)
      ->type_name("N")
      ->default_str("all");
  add_list(command, "--accept", flags.accept,
           "Synthetic: accepted draft tokens per cycle, a mean or one count per cycle")
      ->needs(synthetic)
      ->default_str("1.5");
  with_choices(command,
               command.add_option("--clock", flags.clock,
                                  "Synthetic: wall, or processor, which excludes the time of other programs"),
               clock_names())
      ->needs(synthetic)
      ->type_name("NAME")
      ->capture_default_str();
}

void add_page(CLI::App& command, BenchFlags& flags) {
  CLI::Option* html =
      common(command, command.add_option("--export-html", flags.export_html,
                                         "Also write a page with charts and images, in one file"))
          ->type_name("FILE");
  command
      .add_option("--scores", flags.scores,
                  "For the page: JSON with scores by method, {\"ar\": {\"fid\": 20.1, \"clip\": 0.31}}")
      ->needs(html)
      ->type_name("FILE");
  command.add_option("--growth", flags.growth, "For the page: growth.json of scripts/growth.py")
      ->needs(html)
      ->type_name("FILE");
}

void add_outputs(CLI::App& command, BenchFlags& flags) {
  command.add_flag("--json", flags.json, "Print JSON with all samples instead of a table");
  common(command,
         command.add_option("--export-json", flags.export_json, "Write the results to a file, as JSON"))
      ->type_name("FILE");
  command.add_option("--export-csv", flags.export_csv, "Also write a CSV row per method and batch size")
      ->type_name("FILE");
  command.add_option("--export-markdown", flags.export_markdown, "Also write the tables as Markdown")
      ->type_name("FILE");
  add_page(command, flags);
  command
      .add_option("--export-svg", flags.export_svg,
                  "Also write figures for documents into a folder, each as SVG and PDF: speed-up, step "
                  "compression, time per cycle, acceptance maps")
      ->type_name("DIR");
  command.add_flag("--overwrite", flags.overwrite, "Replace files that exist");
  common(command, command.add_flag("--save-table", flags.save_table, kSaveTable));
  common(command, command.add_option("--compare", flags.compare,
                                     "Measure nothing: compare two files of --export-json"))
      ->expected(2)
      ->type_name("FILE FILE");
}

}  // namespace

Sweep sweep_of(const BenchFlags& flags) {
  std::vector<std::string> pieces = flags.trees;
  if (!pieces.empty()) pieces.front() = "tree=" + pieces.front();
  pieces.insert(pieces.end(), flags.sweep.begin(), flags.sweep.end());
  return parse_sweep(pieces);
}

void add_bench(CLI::App& app) {
  auto flags = std::make_shared<BenchFlags>();
  CLI::App* command =
      app.add_subcommand("bench", "Measure methods and compare them with plain autoregressive decoding (ar)");
  flags->jobs.add(*command);
  command->remove_option(command->get_option("--output"));
  begin_group(*command, "Captions");
  add_captions(*command, *flags);
  command->add_option("--count", flags->count, "Generate the first N of the images")
      ->type_name("N")
      ->default_str("all");
  begin_group(*command, "Measurement");
  add_methods(*command, *flags);
  add_measurement(*command, *flags);
  add_synthetic(*command, *flags);
  command->add_flag("--startup", flags->startup,
                    "Time whole processes instead: --version, --help, and an image from start to file");
  flags->model.add_model(*command, false);
  flags->model.add_runtime(*command);
  begin_group(*command, "Output");
  add_outputs(*command, *flags);
  flags->logging.add(*command);
  add_examples(
      *command,
      {{"compare two methods with ar", "lamplighter bench --methods sjd,eagle"},
       {"write a page with charts for twenty captions",
        "lamplighter bench --methods eagle,lantern++ --sweep tree=chain-2,chain-4 --captions captions.json "
        "--limit 20 --export-html page.html"},
       {"time cycles with the shape of a published model, without a checkpoint",
        "lamplighter bench --synthetic lumina-768 --methods eagle:tree=lantern-58,sjd:tree=chain-15"},
       {"compare two runs", "lamplighter bench --compare before.json after.json"}});
  command->callback([flags, command] {
    Terminal terminal(flags->logging);
    if (!flags->compare.empty()) {
      check_kind(*command, kCompare);
      return compare_benches(flags->compare, flags->json, terminal);
    }
    const bool synthetic = !flags->synthetic.empty();
    if (synthetic) check_kind(*command, kSynthetic);
    if (flags->startup) check_kind(*command, kStartup);
    check_flags(*flags);
    const PageFiles files = read_page_files(*flags);
    flags->command = command_line(*command);
    const auto measure = flags->startup ? bench_startup : synthetic ? bench_synthetic : bench_bundle;
    give_bench_results(*flags, measure(*flags, terminal), files, terminal);
  });
}

}  // namespace lamplighter::cli

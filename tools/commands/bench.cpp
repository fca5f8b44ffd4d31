#include <algorithm>
#include <memory>
#include <set>

#include "base/files.h"
#include "base/json.h"
#include "base/memory.h"
#include "bench/bench.h"
#include "bench/methods.h"
#include "bench/synthetic_bench.h"
#include "commands.h"
#include "lamplighter/error.h"
#include "lamplighter/outputs.h"
#include "lamplighter/version.h"
#include "tools/bench_report.h"
#include "tools/devices.h"
#include "tools/requests.h"
#include "tools/signals.h"
#include "tools/terminal.h"

namespace lamplighter::cli {
namespace {

constexpr const char* kPrompt = "a white lighthouse on the coast at dusk";

struct BenchFlags {
  ModelFlags model;
  JobFlags jobs;
  TalkFlags talk;
  std::vector<std::string> methods{kBaseline}, trees;
  std::optional<int> repeats;
  std::optional<std::size_t> count;
  std::string synthetic, clock = "wall";
  std::optional<std::int64_t> layers;
  std::vector<double> accept;
  bool json = false, overwrite = false;
  std::string export_json, markdown;
};

// Random weights take the place of a bundle and its pictures: a flag about those would change nothing. What
// the environment has set is not in parse_order().
void check_synthetic(const CLI::App& command) {
  static const std::set<std::string> known{"--synthetic", "--layers",    "--accept", "--clock",
                                           "--tree",      "--repeats",   "--json",   "--export-json",
                                           "--markdown",  "--overwrite", "--device", "--dtype",
                                           "--threads",   "--no-graph",  "--quiet",  "--verbose"};
  for (const CLI::Option* option : command.parse_order()) {
    const std::string name = option->get_name();
    if (known.count(name) == 0) {
      throw Error(
          ExitCode::usage,
          name + " and --synthetic exclude each other: random weights have no bundle and no pictures");
    }
  }
}

void check_outputs(const BenchFlags& flags) {
  std::vector<std::string> files;
  for (const std::string& file : {flags.export_json, flags.markdown}) {
    if (!file.empty()) files.push_back(file);
  }
  check_distinct(files);
  for (const std::string& file : files) check_output(file, flags.overwrite);
}

void check_flags(const BenchFlags& flags) {
  const auto positive = [](const char* flag, std::int64_t got) {
    if (got < 1)
      throw Error(ExitCode::usage,
                  std::string(flag) + ": got " + std::to_string(got) + ", expected 1 or more");
  };
  positive("--repeats", flags.repeats.value_or(1));
  positive("--count", static_cast<std::int64_t>(flags.count.value_or(1)));
  positive("--batch-size", flags.model.runtime.batch_size);
  check_outputs(flags);
}

// Where the run took place.
Json heading(const BenchFlags& flags, const std::string& model, const std::string& device,
             const std::string& dtype) {
  return {{"version", kVersion},
          {"model", model},
          {"device", device},
          {"dtype", dtype},
          {"threads", flags.model.runtime.threads}};
}

void print_results(const BenchFlags& flags, const std::vector<Table>& tables, const Json& json,
                   Terminal& terminal) {
  if (flags.json) {
    terminal.result(json.dump());
    return;
  }
  for (std::size_t i = 0; i < tables.size(); ++i) {
    if (i > 0) terminal.result("");
    for (const std::string& line : tables[i].lines()) terminal.result(line);
  }
}

// Printed first: a file that cannot be written does not cost the measurement.
void give_results(const BenchFlags& flags, const std::vector<Table>& tables, const std::string& words,
                  const Json& json, Terminal& terminal) {
  print_results(flags, tables, json, terminal);
  if (!flags.export_json.empty()) write_file(flags.export_json, json.dump(1) + "\n");
  if (!flags.markdown.empty()) {
    std::string text = words + "\n";
    for (const Table& table : tables) text += "\n" + table.markdown();
    write_file(flags.markdown, text);
  }
}

std::vector<Request> read_requests(const BenchFlags& flags, const Manifest& manifest) {
  check_drawable(manifest);
  Request defaults;
  if (manifest.prompt && manifest.prompt->kind == "class") {
    defaults.class_id = 0;
  } else {
    defaults.prompt = kPrompt;
  }
  std::vector<Request> requests;
  for (Job& job : make_jobs(flags.jobs, defaults, parse_seed(flags.jobs.seed))) {
    TextToImage::check(manifest, job.request);
    requests.push_back(std::move(job.request));
  }
  if (flags.count && *flags.count < requests.size()) requests.resize(*flags.count);
  return requests;
}

void bench_bundle(const BenchFlags& flags, Terminal& terminal) {
  const Manifest manifest = read_manifest(flags.model.folder());
  BenchOptions options;
  options.methods = bench_methods(flags.methods, flags.trees);
  options.batch_size = static_cast<std::size_t>(flags.model.runtime.batch_size);
  for (const BenchMethod& method : options.methods)
    resolve_method(method.options, manifest);  // early refusal
  options.requests = read_requests(flags, manifest);
  const std::size_t batches = (options.requests.size() + options.batch_size - 1) / options.batch_size;
  options.repeats = flags.repeats.value_or(batches > 1 ? 1 : 5);

  TextToImage engine(manifest.directory, flags.model.options());
  const std::string kind = engine.device().substr(0, engine.device().find(':'));
  std::vector<BenchMethod> used = options.methods;
  for (BenchMethod& method : used) method.options = resolve_method(method.options, manifest, kind);
  const OrderlyStop orderly;
  const std::vector<BenchSample> samples = run_bench(
      engine, options,
      [&](const BenchSample& sample) {
        terminal.detail(sample.method + ", batch " + std::to_string(sample.batch) + ", repeat " +
                        std::to_string(sample.repeat) + ": decode " +
                        format_fixed(sample.statistics.decode_ms, 1) + " ms");
        return stop_signal() == 0;
      },
      [](const Progress&) { return stop_signal() == 0; });
  const std::vector<BenchReport> reports = report(samples);
  std::string words = "bundle " + manifest.name + " on " + engine.device() + " in " + engine.dtype() +
                      ", pictures: " + std::to_string(options.requests.size()) +
                      ", together: " + std::to_string(options.batch_size) +
                      ", repeats: " + std::to_string(options.repeats);
  const std::string about = about_interval(reports, batches);
  if (!about.empty()) words += "; " + about;
  terminal.say(words);
  Json json = heading(flags, manifest.name, engine.device(), engine.dtype());
  json["batch_size"] = options.batch_size;
  json["repeats"] = options.repeats;
  json["methods"] = json["samples"] = Json::array();
  for (const BenchReport& one : reports) json["methods"].push_back(to_json(one));
  for (const BenchSample& sample : samples) json["samples"].push_back(to_json(sample));
  give_results(flags, tables(reports, used), words, json, terminal);
}

// One number is a mean, several are counts of one cycle after the other.
std::vector<std::int64_t> accepted_counts(const std::vector<double>& values) {
  std::vector<std::int64_t> counts;
  for (const double value : values) {
    const bool whole = value == static_cast<double>(static_cast<std::int64_t>(value));
    if (!(value >= 0 && value < kMaxTreeNodes) || (values.size() > 1 && !whole)) {
      throw Error(ExitCode::usage, "--accept: got " + std::to_string(value) +
                                       ", expected a mean, or whole numbers, 0 or more");
    }
    counts.push_back(static_cast<std::int64_t>(value));
  }
  return values.size() == 1 ? accepted_around(values.front()) : counts;
}

void bench_synthetic(const BenchFlags& flags, Terminal& terminal) {
  const SyntheticShape shape = synthetic_shape(flags.synthetic, flags.layers);
  CycleOptions options;
  options.rounds = flags.repeats.value_or(12);
  options.clock = clock_from(flags.clock);
  options.accepted = accepted_counts(flags.accept.empty() ? std::vector<double>{1.5} : flags.accept);
  const std::vector<std::string> trees =
      flags.trees.empty() ? std::vector<std::string>{"chain-3"} : flags.trees;
  const Placement placement = resolve_placement(flags.model.runtime);
  options.graph = flags.model.options().graph;
  options.note = flags.model.runtime.note;
  // As pictures are drawn on a device: the next cycle waits there when one ends.
  options.stages = placement.device.is_cpu() || !options.graph;
  if (!options.stages) options.block = 16;
  const OrderlyStop orderly;
  SyntheticReport report = run_synthetic(shape, trees, options, placement, [&](int round) {
    terminal.detail("round " + std::to_string(round + 1) + " of " + std::to_string(options.rounds));
    return stop_signal() == 0;
  });
  const std::string name = device_name(placement.device);
  if (const std::optional<double> rate = published_bandwidth(name)) {
    report.bandwidth = *rate;
    report.bandwidth_is_published = true;
  }
  const std::string words =
      "synthetic " + shape.name + ": random weights on " + name + " in " + dtype_name(placement.dtype) +
      ", " + std::to_string(report.context) + " rows of context, " + std::to_string(options.rounds) +
      " interleaved rounds of " + std::to_string(options.block) + " cycles; " +
      (options.clock == Clock::wall ? "wall-clock" : "processor") +
      " times are real, acceptance is scripted" +
      (report.rows.front().kernels > 0 ? "; cycles are captured graphs" : "") +
      (report.bandwidth > 0
           ? "; floor: bytes read over " + format_fixed(report.bandwidth / 1e6, 1) + " GB/s, " +
                 (report.bandwidth_is_published ? "as published" : "measured here")
           : "") +
      "; memory at most " + format_bytes(report.peak_bytes);
  terminal.say(words);
  Json json = heading(flags, "synthetic " + shape.name, placement.device.str(), dtype_name(placement.dtype));
  json["clock"] = flags.clock;
  json["device_name"] = name;
  json.update(to_json(report));
  give_results(flags, tables(report), words, json, terminal);
}

template <typename T>
CLI::Option* add_list(CLI::App& command, const char* name, std::vector<T>& values, const char* words) {
  return command.add_option(name, values, words)->delimiter(',')->allow_extra_args(false)->type_name("LIST");
}

void add_synthetic(CLI::App& command, BenchFlags& flags) {
  std::string names;
  for (const std::string& name : synthetic_names()) names += (names.empty() ? "" : ", ") + name;
  CLI::Option* synthetic =
      command
          .add_option("--synthetic", flags.synthetic,
                      "Cost of cycles on random weights of this shape instead of a bundle: " + names)
          ->type_name("NAME");
  command
      .add_option("--layers", flags.layers,
                  "Synthetic: the first N layers of the target alone (default: all)")
      ->needs(synthetic)
      ->type_name("N");
  add_list(command, "--accept", flags.accept,
           "Synthetic: drafted tokens accepted per cycle, a mean or one after the other (default: 1.5)")
      ->needs(synthetic);
  command
      .add_option("--clock", flags.clock,
                  "Synthetic: wall, or processor to leave out what other programs took (default: wall)")
      ->needs(synthetic)
      ->type_name("NAME");
}

}  // namespace

void add_bench(CLI::App& app) {
  auto flags = std::make_shared<BenchFlags>();
  flags->model.runtime.batch_size = 1;
  CLI::App* command = app.add_subcommand("bench", "Measure methods against plain autoregression");
  flags->model.add_model(*command, false);
  flags->jobs.add(*command);
  command->remove_option(command->get_option("--output"));
  flags->model.add_runtime(*command);
  command->add_option("--batch-size", flags->model.runtime.batch_size, "Pictures drawn together (default: 1)")
      ->type_name("N");
  command->add_option("--count", flags->count, "Draw the first N of the pictures")->type_name("N");
  add_list(*command, "--methods", flags->methods,
           "Methods, as in ar,eagle,lantern++:k=10:lambda=3:tree=chain-4; ar is always among them");
  add_list(*command, "--tree", flags->trees,
           "Trees for the methods that name none; with --synthetic: the trees to run");
  command
      ->add_option("--repeats", flags->repeats,
                   "Measured rounds over all pictures (default: 5 for one batch, else 1; synthetic: 12)")
      ->type_name("N");
  add_synthetic(*command, *flags);
  command->add_flag("--json", flags->json, "Print JSON with all samples instead of a table");
  command->add_option("--export-json", flags->export_json, "Also write that JSON to a file")
      ->type_name("FILE");
  command->add_option("--markdown", flags->markdown, "Also write the tables to a file")->type_name("FILE");
  command->add_flag("--overwrite", flags->overwrite, "Replace files that exist");
  flags->talk.add(*command);
  command->callback([flags, command] {
    Terminal terminal(flags->talk);
    if (!flags->synthetic.empty()) check_synthetic(*command);
    check_flags(*flags);
    flags->synthetic.empty() ? bench_bundle(*flags, terminal) : bench_synthetic(*flags, terminal);
  });
}

}  // namespace lamplighter::cli

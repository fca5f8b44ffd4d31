#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>

#include "base/stopwatch.h"
#include "base/utf8.h"
#include "commands.h"
#include "lamplighter/error.h"
#include "lamplighter/outputs.h"
#include "lamplighter/pipeline.h"
#include "lamplighter/sinks.h"
#include "pipeline/metadata.h"
#include "tools/auto_method.h"
#include "tools/output_flags.h"
#include "tools/report.h"
#include "tools/requests.h"
#include "tools/signals.h"
#include "tools/terminal.h"
#include "tree/tree.h"

namespace lamplighter::cli {
namespace {

struct GenerateFlags {
  ModelFlags model;
  JobFlags jobs;
  MethodFlags method;
  TalkFlags talk;
  OutputFlags files;
  std::string params_from, config;
  bool overwrite = false, skip_existing = false, json = false, no_metadata = false;
};

// Flags of the command line, where a picture's metadata would give another value.
struct Given {
  bool seed, dtype;
};

// Everything that is known before weights are loaded.
struct Plan {
  std::vector<Job> jobs;
  MethodOptions method;
  RuntimeOptions runtime;
  Recorded recorded;               // of --params-from
  std::vector<std::string> paths;  // of the pictures
  std::size_t skipped = 0;         // pictures that were there
};

// Which files are read is for flags alone to say: pictures come from strangers.
void check_files(const GenerateFlags& flags, const MethodOptions& method) {
  const auto refuse = [&](const char* flag, const std::string& path) {
    throw Error(ExitCode::input, flags.params_from + ": was drawn with the file " + shorten(path, 200) +
                                     ", which a picture cannot choose; give " + flag + " FILE");
  };
  if (flags.method.options.tree.empty() && is_tree_file(method.tree)) refuse("--tree", method.tree);
  if (flags.method.options.neighbours.empty() && !method.neighbours.empty())
    refuse("--neighbours", method.neighbours);
}

// What flags say, over the picture of `--params-from`.
Plan read_flags(const GenerateFlags& flags, const Given& given, Terminal& terminal) {
  Plan plan;
  const bool recorded = !flags.params_from.empty();
  if (recorded) plan.recorded = read_recorded(flags.params_from);
  const bool own_seed = given.seed || !recorded;
  const std::uint64_t seed = own_seed ? parse_seed(flags.jobs.seed) : plan.recorded.request.seed;
  if (own_seed && flags.jobs.seed == "-1") terminal.say("seed " + std::to_string(seed));
  plan.jobs = make_jobs(flags.jobs, plan.recorded.request, seed);
  plan.method = flags.method.over(plan.recorded.method);
  if (recorded) check_files(flags, plan.method);
  plan.runtime = flags.model.options();
  if (recorded && !given.dtype) plan.runtime.dtype = plan.recorded.dtype;
  return plan;
}

void check_request(const Manifest& manifest, const Job& job) {
  try {
    TextToImage::check(manifest, job.request);
  } catch (const Error& error) {
    const bool from_file =
        job.origin.rfind("prompt", 0) != 0 || job.origin.find(" line ") != std::string::npos;
    if (!from_file) throw;
    throw Error(ExitCode::input, job.origin + ": " + error.what());
  }
}

// Leaves out the pictures that are there.
void skip_existing(Plan& plan, std::vector<OutputRequest>& outputs) {
  std::vector<Job> jobs;
  std::vector<std::string> paths;
  std::vector<OutputRequest> wanted;
  for (std::size_t i = 0; i < plan.paths.size(); ++i) {
    std::error_code ignored;
    if (std::filesystem::exists(plan.paths[i], ignored)) continue;
    jobs.push_back(std::move(plan.jobs[i]));
    paths.push_back(std::move(plan.paths[i]));
    wanted.push_back(std::move(outputs[i]));
  }
  plan.skipped = plan.jobs.size() - jobs.size();
  plan.jobs = std::move(jobs);
  plan.paths = std::move(paths);
  outputs = std::move(wanted);
}

// Standard output takes the picture or words about it.
void check_standard_output(const GenerateFlags& flags, const Plan& plan) {
  if (std::find(plan.paths.begin(), plan.paths.end(), "-") == plan.paths.end()) return;
  if (flags.json)
    throw Error(ExitCode::usage, "--output: got '-' with --json, expected one of them: both print");
  if (::isatty(STDOUT_FILENO) == 1)
    throw Error(ExitCode::usage, "--output: got '-' on a terminal, expected a file or a pipe behind it");
}

// Checks requests, method and outputs against the manifest; reads no weights.
void check_plan(const GenerateFlags& flags, const Manifest& manifest, Plan& plan) {
  std::vector<OutputRequest> outputs;
  Extent largest;
  for (const Job& job : plan.jobs) {
    check_request(manifest, job);
    outputs.push_back({job.output, outputs.size(), job.request.seed});
    const Grid& grid = find_grid(manifest, job.request.width, job.request.height);
    largest = {std::max<std::int64_t>(largest.width, grid.width),
               std::max<std::int64_t>(largest.height, grid.height)};
  }
  flags.files.check_room(static_cast<std::int64_t>(outputs.size()), largest);
  resolve_method(plan.method, manifest);
  plan.paths = expand_outputs(outputs);
  check_standard_output(flags, plan);
  if (flags.skip_existing) skip_existing(plan, outputs);
  std::vector<std::string> all = plan.paths;
  for (const std::string& path : flags.files.paths()) all.push_back(path);
  check_distinct(all);
  prepare_outputs(outputs, all, flags.overwrite);
}

// Tells of pictures on the terminal, and prints their paths.
class TerminalSink : public Sink {
 public:
  TerminalSink(const Plan& plan, const Origin& origin, bool json, Terminal& terminal)
      : plan_(plan), origin_(origin), json_(json), terminal_(terminal) {}

  void progress(const Progress& progress) override {
    terminal_.progress(progress.run_done, progress.run_total);
  }

  void picture(std::size_t index, const Request& request, const Result& result) override {
    const std::string& path = plan_.paths[index];
    terminal_.say(std::to_string(index + 1) + "/" + std::to_string(plan_.paths.size()) + " " + path +
                  ": seed " + std::to_string(result.seed) + ", " + summary(result.statistics));
    for (const std::string& line : details(result.statistics)) terminal_.detail(line);
    ++drawn_;
    if (path == "-") return;
    if (!json_) return terminal_.result(path);
    const Json line = report(path, describe_picture(origin_, request, result), result.statistics);
    terminal_.result(line.dump(-1, ' ', false, Json::error_handler_t::replace));
  }

  std::size_t drawn() const { return drawn_; }

 private:
  const Plan& plan_;
  const Origin& origin_;
  bool json_;
  Terminal& terminal_;
  std::size_t drawn_ = 0;
};

void note_changes(const std::string& source, const Recorded& recorded, const Origin& origin,
                  Terminal& terminal) {
  if (source.empty()) return;
  if (recorded.model != origin.model) {
    terminal.say("note: " + source + " was drawn with bundle " + recorded.model + ", not with " +
                 origin.model + ": its settings are taken, the picture will be another");
    return;
  }
  if (recorded.manifest_sha256 != origin.manifest_sha256) {
    terminal.say("note: " + source + " was drawn with other files of bundle " + origin.model +
                 " (weights, drafter or tree); pixels may differ");
  }
  if (!recorded.instructions.empty() && !origin.instructions.empty() &&
      recorded.instructions != origin.instructions) {
    terminal.say("note: " + source + " was drawn in bf16 by the instructions " + recorded.instructions +
                 ", here " + origin.instructions +
                 " draw; pixels may differ. Where the processor has them, LAMPLIGHTER_ISA=" +
                 recorded.instructions + " draws the same");
  }
}

// What the bundle makes of captions, for the first few of those that it does not take as they are.
void note_captions(const Plan& plan, TextToImage& engine, Terminal& terminal) {
  constexpr std::size_t few = 3;
  std::set<std::string> seen;
  std::size_t noted = 0;
  for (const Job& job : plan.jobs) {
    if (job.request.class_id || !seen.insert(job.request.prompt).second) continue;
    const std::vector<std::string> notes = engine.notes(job.request);
    if (notes.empty() || ++noted > few) continue;
    for (const std::string& note : notes) terminal.say("note: " + job.origin + ": " + note);
  }
  if (noted > few) terminal.say("note: so it is with " + std::to_string(noted - few) + " more captions");
}

// Draws and writes the pictures of a plan.
void draw(const GenerateFlags& flags, const Plan& plan, TextToImage& engine, Terminal& terminal) {
  const Origin origin = describe_origin(engine);
  note_changes(flags.params_from, plan.recorded, origin, terminal);
  note_captions(plan, engine, terminal);
  Sinks sinks;
  sinks.push_back(png_sink(origin, plan.paths, !flags.no_metadata, flags.overwrite));
  auto told = std::make_unique<TerminalSink>(plan, origin, flags.json, terminal);
  const TerminalSink& told_of = *told;
  sinks.push_back(std::move(told));
  flags.files.add_sinks(origin, engine, flags.overwrite, sinks);
  std::vector<Request> requests;
  for (const Job& job : plan.jobs) requests.push_back(job.request);
  const OrderlyStop orderly;
  try {
    generate_into(sinks, engine, requests, plan.method, [] { return stop_signal() == 0; });
  } catch (const Error& error) {
    if (error.code() != ExitCode::interrupted) throw;
    throw Error(error.code(), "stopped: " + std::to_string(told_of.drawn()) + " of " +
                                  std::to_string(plan.jobs.size()) +
                                  " pictures stand; the same command with --skip-existing draws the others");
  }
}

void generate(const GenerateFlags& flags, const Given& given) {
  Terminal terminal(flags.talk);
  Plan plan = read_flags(flags, given, terminal);
  const Manifest manifest = read_manifest(flags.model.folder());
  require_drawable(manifest);
  plan.method = choose_method(plan.method, manifest, plan.runtime, plan.jobs.size(), terminal);
  check_plan(flags, manifest, plan);
  if (plan.skipped > 0) {
    terminal.say(std::to_string(plan.skipped) + " of " + std::to_string(plan.skipped + plan.jobs.size()) +
                 " pictures are there");
  }
  if (plan.jobs.empty()) return;
  Stopwatch watch;
  TextToImage engine(flags.model.folder(), plan.runtime);
  terminal.detail("bundle " + manifest.name + " on " + engine.device() + " in " + engine.dtype() +
                  ", checked in " + format_fixed(watch.lap(), 0) + " ms");
  draw(flags, plan, engine, terminal);
}

}  // namespace

void add_generate(CLI::App& app) {
  auto flags = std::make_shared<GenerateFlags>();
  CLI::App* command = app.add_subcommand("generate", "Draw pictures from captions");
  flags->model.add_model(*command, false);
  flags->jobs.add(*command);
  flags->method.add(*command);
  flags->model.add_runtime(*command);
  flags->model.add_batch_size(*command);
  CLI::Option* overwrite = command->add_flag("--overwrite", flags->overwrite, "Replace files that exist");
  command
      ->add_flag("--skip-existing", flags->skip_existing,
                 "Leave pictures that exist and draw the others, with the seeds they would have had")
      ->excludes(overwrite);
  flags->files.add(*command);
  command->add_flag("--json", flags->json, "Print one JSON line per picture instead of its path");
  command->add_flag("--no-metadata", flags->no_metadata, "Write no text into the PNG files");
  command->add_option("--params-from", flags->params_from, "Take what is not given here from a picture")
      ->type_name("IMAGE");
  command->add_option("--config", flags->config, "JSON file with flags: {\"cfg_scale\": 5}")
      ->type_name("FILE");
  flags->talk.add(*command);
  command->footer(
      command->get_footer() +
      "\n\nExample: lamplighter generate -p \"a white lighthouse on the coast at dusk\" -o lighthouse.png");
  command->callback([flags, command] {
    if (!flags->config.empty()) apply_config(*command, flags->config);
    const auto given = [&](const char* flag) { return command->get_option(flag)->count() != 0; };
    generate(*flags, {given("--seed"), given("--dtype")});
  });
}

}  // namespace lamplighter::cli

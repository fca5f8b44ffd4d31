#include <memory>
#include <optional>
#include <set>

#include "base/stopwatch.h"
#include "bench/auto_method.h"
#include "commands.h"
#include "generate_plan.h"
#include "lamplighter/error.h"
#include "lamplighter/method.h"
#include "lamplighter/pipeline.h"
#include "lamplighter/sinks.h"
#include "params_from.h"
#include "tools/help.h"
#include "tools/report.h"
#include "tools/signals.h"

namespace lamplighter::cli {
namespace {

// Tells of pictures on the terminal, and prints their paths.
class TerminalSink : public Sink {
 public:
  TerminalSink(const Plan& plan, const Settings& settings, const Origin& origin, bool json,
               Terminal& terminal)
      : plan_(plan), settings_(settings), origin_(origin), json_(json), terminal_(terminal) {}

  void progress(const Progress& progress) override {
    if (!settings_.streams) terminal_.progress(progress.run_done, progress.run_total);
  }

  void picture(std::size_t index, const Request& request, const Result& result) override {
    const std::string& path = plan_.pictures[index].path;
    const std::string place = settings_.streams
                                  ? std::to_string(plan_.pictures[index].job.index + 1)
                                  : std::to_string(index + 1) + "/" + std::to_string(plan_.pictures.size());
    terminal_.say(place + " " + path + ": seed " + std::to_string(result.seed) + ", " +
                  summary(result.statistics));
    for (const std::string& line : details(result.statistics)) terminal_.detail(line);
    ++drawn_;
    if (path == "-") return;
    if (!json_) return terminal_.result(path);
    terminal_.result(to_text(report(path, describe_picture(origin_, request, result), result.statistics)));
  }

  std::size_t drawn() const { return drawn_; }

 private:
  const Plan& plan_;
  const Settings& settings_;
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
  for (const Picture& picture : plan.pictures) {
    const Job& job = picture.job;
    if (job.request.class_id || !seen.insert(job.request.prompt).second) continue;
    const std::vector<std::string> notes = engine.notes(job.request);
    if (notes.empty() || ++noted > few) continue;
    for (const std::string& note : notes) terminal.say("note: " + job.origin + ": " + note);
  }
  if (noted > few) terminal.say("note: so it is with " + std::to_string(noted - few) + " more captions");
}

// Draws and writes the pictures of a plan.
void draw(const GenerateFlags& flags, const Settings& settings, const Plan& plan, TextToImage& engine,
          Terminal& terminal) {
  const Origin origin = describe_origin(engine);
  note_captions(plan, engine, terminal);
  Sinks sinks;
  std::vector<Request> requests;
  std::vector<std::string> paths;
  for (const Picture& picture : plan.pictures) {
    requests.push_back(picture.job.request);
    paths.push_back(picture.path);
  }
  sinks.push_back(picture_sink(origin, std::move(paths), !flags.no_metadata, flags.overwrite));
  auto told = std::make_unique<TerminalSink>(plan, settings, origin, flags.json, terminal);
  const TerminalSink& told_of = *told;
  sinks.push_back(std::move(told));
  flags.files.add_sinks(origin, engine, flags.overwrite, sinks);
  const OrderlyStop orderly;
  try {
    generate_into(sinks, engine, requests, settings.method, [] { return stop_signal() == 0; });
  } catch (const Error& error) {
    if (error.code() != ExitCode::interrupted) throw;
    throw Error(error.code(), "stopped: " + std::to_string(told_of.drawn()) + " of " +
                                  std::to_string(plan.pictures.size()) +
                                  " pictures stand; the same command with --skip-existing draws the others");
  }
}

void load(const GenerateFlags& flags, const Settings& settings, std::optional<TextToImage>& engine,
          Terminal& terminal) {
  Stopwatch watch;
  engine.emplace(flags.model.folder(), settings.runtime);
  terminal.detail("bundle " + engine->manifest().name + " on " + engine->device() + " in " + engine->dtype() +
                  (engine->cache_dtype() == "int8" ? ", caches in int8" : "") + ", checked in " +
                  format_fixed(watch.lap(), 0) + " ms");
  note_changes(flags.params_from, settings.recorded, describe_origin(*engine), terminal);
}

void draw_all(const GenerateFlags& flags, Settings settings, Terminal& terminal) {
  JobReader reader(flags.jobs, settings.recorded.request, settings.seed, settings.streams);
  std::vector<Job> jobs = reader.next();
  const Manifest manifest = read_manifest(flags.model.folder());
  require_drawable(manifest);
  settings.method = choose_method(settings.method, manifest, settings.runtime, jobs.size(), terminal.sayer());
  Failures failures(flags.json, terminal);
  std::optional<TextToImage> engine;
  for (; !jobs.empty(); jobs = reader.next()) {
    const Plan plan = make_plan(flags, settings, manifest, std::move(jobs), failures);
    const std::size_t present = plan.total - plan.pictures.size();
    if (present > 0)
      terminal.say(std::to_string(present) + " of " + std::to_string(plan.total) + " pictures are there");
    if (plan.pictures.empty()) continue;
    if (!engine) load(flags, settings, engine, terminal);
    draw(flags, settings, plan, *engine, terminal);
  }
  failures.finish();
}

void generate(const GenerateFlags& flags, const Given& given) {
  Terminal terminal(flags.talk);
  const Settings settings = read_flags(flags, given, terminal);
  try {
    draw_all(flags, settings, terminal);
  } catch (const Error& error) {
    if (flags.params_from.empty()) throw;
    throw Error(blame_picture(flags.params_from, settings.recorded, flags.model.folder(),
                              flags.model.options(), error));
  }
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
  begin_group(*command, "Output");
  CLI::Option* overwrite = command->add_flag("--overwrite", flags->overwrite, "Replace files that exist");
  command
      ->add_flag("--skip-existing", flags->skip_existing,
                 "Leave pictures that exist and draw the others, with the seeds they would have had")
      ->excludes(overwrite);
  command
      ->add_option("--first-index", flags->first_index, "Number of the first picture in names (default: 0)")
      ->type_name("N");
  flags->files.add(*command);
  command->add_flag("--json", flags->json,
                    "Print one JSON line per picture instead of its path; its ms are those of the pictures "
                    "drawn side by side, image alone is its own");
  command->add_flag("--no-metadata", flags->no_metadata, "Write no text into the files");
  begin_group(*command, "Options");
  command->add_option("--params-from", flags->params_from, "Take what is not given here from a picture")
      ->type_name("IMAGE");
  command->add_option("--config", flags->config, "JSON file with flags: {\"cfg_scale\": 5}")
      ->type_name("FILE");
  flags->talk.add(*command);
  add_examples(
      *command,
      {{"four pictures of a caption, numbered, and a sheet of them",
        "lamplighter generate -p \"a red boat on the sea at dawn\" -b 4 -o \"boat-%04d.png\" --grid "
        "sheet.png"},
       {"a picture a line, named by its caption, while the lines come",
        "cat captions.txt | lamplighter generate --prompt-file - -o \"pictures/{index:04d}-{prompt}.png\""},
       {"several tokens a pass, and how they came",
        "lamplighter generate --method eagle -p \"a blue house in the snow\" -o house.png --acceptance-map "
        "map.png"},
       {"the same picture again with other guidance",
        "lamplighter generate --params-from house.png --cfg-scale 4 -o again.png"}});
  ModelFlags::add_known_words(*command);
  command->callback([flags, command] {
    if (!flags->config.empty()) apply_config(*command, flags->config);
    const auto given = [&](const char* flag) { return command->get_option(flag)->count() != 0; };
    generate(*flags, {given("--seed"), given("--dtype"), given("--cache-dtype")});
  });
}

}  // namespace lamplighter::cli

#include <memory>
#include <optional>
#include <set>

#include "base/format.h"
#include "base/stopwatch.h"
#include "lamplighter/error.h"
#include "lamplighter/method.h"
#include "lamplighter/pipeline.h"
#include "lamplighter/sinks.h"
#include "text/prompt_syntax.h"
#include "tools/commands/commands.h"
#include "tools/commands/generate_plan.h"
#include "tools/commands/params_from.h"
#include "tools/help.h"
#include "tools/report.h"
#include "tools/signals.h"

namespace lamplighter::cli {
namespace {

// Reports progress and results on the terminal, and prints the paths of files.
class TerminalSink : public Sink {
 public:
  TerminalSink(const Plan& plan, const Settings& settings, const Origin& origin, bool json,
               Terminal& terminal)
      : plan_(plan), settings_(settings), origin_(origin), json_(json), terminal_(terminal) {}

  void progress(const Progress& progress) override {
    if (!settings_.streams) terminal_.progress(progress.run_done, progress.run_total);
  }

  void image(std::size_t index, const Request& request, const Result& result) override {
    const std::string& path = plan_.images[index].path;
    const std::string position = settings_.streams
                                     ? std::to_string(plan_.images[index].job.index + 1)
                                     : std::to_string(index + 1) + "/" + std::to_string(plan_.images.size());
    terminal_.log(position + " " + path + ": seed " + std::to_string(result.seed) + ", " +
                  summary(result.statistics));
    for (const std::string& line : details(result.statistics)) terminal_.detail(line);
    ++generated_;
    if (path == "-") return;
    const bool is_shared = !settings_.codes.empty() && generated_ < plan_.images.size();
    if (!json_) return is_shared ? void() : terminal_.result(path);
    terminal_.result(to_text(report(path, describe_image(origin_, request, result), result)));
  }

  std::size_t generated() const { return generated_; }

 private:
  const Plan& plan_;
  const Settings& settings_;
  const Origin& origin_;
  bool json_;
  Terminal& terminal_;
  std::size_t generated_ = 0;
};

void note_changes(const std::string& source, const Recorded& recorded, const Origin& origin,
                  Terminal& terminal) {
  if (source.empty()) return;
  if (recorded.model != origin.model) {
    terminal.log("note: " + source + " was generated with bundle " + recorded.model + ", not with " +
                 origin.model + ": its settings are used, but the image will differ");
    return;
  }
  if (recorded.manifest_sha256 != origin.manifest_sha256) {
    terminal.log("note: " + source + " was generated with other files of bundle " + origin.model +
                 " (weights, drafter or tree); pixels may differ");
  }
  if (!recorded.instructions.empty() && !origin.instructions.empty() &&
      recorded.instructions != origin.instructions) {
    terminal.log("note: " + source + " was generated in bf16 with the instructions " + recorded.instructions +
                 ", this run uses " + origin.instructions + "; pixels may differ. LAMPLIGHTER_ISA=" +
                 recorded.instructions + " generates the same image on processors with these instructions");
  }
}

// Prints the notes on captions that the bundle does not know or cuts off, for the first few of them.
void note_captions(const Plan& plan, TextToImage& engine, PromptSyntax& syntax, Terminal& terminal) {
  constexpr std::size_t few = 3;
  std::set<std::string> seen;
  std::size_t noted = 0;
  for (const PlannedImage& image : plan.images) {
    const Job& job = image.job;
    if (job.request.class_id || !seen.insert(job.request.prompt).second) continue;
    syntax.add(job.request.prompt);
    const std::vector<std::string> notes = engine.notes(job.request);
    if (notes.empty() || ++noted > few) continue;
    for (const std::string& note : notes) terminal.log("note: " + job.origin + ": " + note);
  }
  if (noted > few) terminal.log("note: similar notes on " + counted(noted - few, "more caption"));
  const std::string forms = syntax.note();
  if (!forms.empty()) terminal.log(forms);
}

// Images of the run so far; a stream has more to come.
struct Done {
  std::size_t complete = 0, total = 0;
};

// The command that completes a run that was stopped. Files of all images hold those that were complete.
std::string way_on(const GenerateFlags& flags, const Settings& settings, const Done& done) {
  const bool has_files = !flags.files.paths().empty(), keeps = flags.skip_existing;
  const bool anew = flags.overwrite || (has_files && !keeps);
  const bool is_alone = flags.jobs.output == "-" || done.complete == 0;
  std::string more;
  if (anew && !flags.overwrite) more = " --overwrite";
  if (!anew && !keeps && !is_alone) more = " --skip-existing";
  if (flags.jobs.seed == "-1") more += " --seed " + std::to_string(settings.seed);
  return "the same command" + (more.empty() ? "" : " with" + more) +
         (has_files && keeps ? ", with other names of the files of all images," : "") +
         (flags.jobs.prompt_file == "-" ? " and the same input" : "") +
         (anew       ? " generates all again"
          : is_alone ? " generates them"
                     : " generates the others");
}

// Samples and writes the images of a plan.
void generate(const GenerateFlags& flags, const Settings& settings, const Plan& plan, TextToImage& engine,
              PromptSyntax& syntax, Done& done, Terminal& terminal) {
  const Origin origin = describe_origin(engine);
  note_captions(plan, engine, syntax, terminal);
  Sinks sinks;
  std::vector<Request> requests;
  std::vector<std::string> paths;
  for (const PlannedImage& image : plan.images) {
    requests.push_back(image.job.request);
    paths.push_back(image.path);
  }
  if (settings.codes.empty())
    sinks.push_back(image_sink(origin, std::move(paths), !flags.no_metadata, flags.overwrite));
  auto reporting = std::make_unique<TerminalSink>(plan, settings, origin, flags.json, terminal);
  const TerminalSink& report = *reporting;
  sinks.push_back(std::move(reporting));
  flags.files.add_sinks(origin, engine, flags.overwrite, sinks);
  const OrderlyStop orderly;
  const std::size_t before = done.complete;
  try {
    generate_into(sinks, engine, requests, settings.method, [] { return stop_signal() == 0; });
    done.complete += report.generated();
  } catch (const Error& error) {
    if (error.code() != ExitCode::interrupted) throw;
    done.complete = before + report.generated();
    throw Error(error.code(), "stopped with " +
                                  (settings.streams ? counted(done.complete, "image")
                                                    : std::to_string(done.complete) + " of " +
                                                          counted(done.total, "image")) +
                                  " complete; " + way_on(flags, settings, done));
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

// Encodes the image that images begin with, once their files are known to be writable.
void encode_continued(const Manifest& manifest, TextToImage& engine, Continued& continued, Plan& plan) {
  continued.encode(engine);
  for (PlannedImage& image : plan.images) continued.apply(manifest, image.job.request);
}

void generate_all(const GenerateFlags& flags, const Given& given, Settings settings, Terminal& terminal) {
  JobReader reader(flags.jobs, settings.recorded.request, settings.seed, settings.streams);
  std::vector<Job> jobs = reader.next();
  const Manifest manifest = read_manifest(flags.model.folder());
  require_tokens(manifest);
  flags.jobs.check(manifest);
  settings.codes = codes_alone(flags, given, manifest);
  settings.method =
      choose_method(settings.method, manifest, settings.runtime, jobs.size(), terminal.log_callback());
  Failures failures(flags.json, terminal);
  PromptSyntax syntax;
  std::optional<TextToImage> engine;
  if (settings.continued.image) {
    Request sized = settings.recorded.request;
    flags.jobs.sampling.apply(sized);
    fit_continued(flags.continued, settings.recorded, manifest, sized, settings.continued);
  }
  Done done;
  for (; !jobs.empty(); jobs = reader.next()) {
    Plan plan = make_plan(flags, settings, manifest, std::move(jobs), failures);
    const std::size_t present = plan.total - plan.images.size();
    done.complete += present;
    done.total += plan.total;
    if (present > 0)
      terminal.log("already there: " + std::to_string(present) + " of " + counted(plan.total, "image"));
    if (plan.images.empty()) continue;
    if (!engine && settings.continued.region) {
      const std::string note = note_region(settings.continued, *plan.images.front().job.request.region);
      if (!note.empty()) terminal.log(note);
    }
    if (!engine) load(flags, settings, engine, terminal);
    if (settings.continued.image) encode_continued(manifest, *engine, settings.continued, plan);
    generate(flags, settings, plan, *engine, syntax, done, terminal);
  }
  failures.finish();
}

void generate(const GenerateFlags& flags, const Given& given) {
  Terminal terminal(flags.logging);
  const Settings settings = read_flags(flags, given, terminal);
  try {
    generate_all(flags, given, settings, terminal);
  } catch (const Error& error) {
    if (flags.params_from.empty()) throw;
    throw Error(blame_image(flags.params_from, settings.recorded, flags.model.folder(), flags.model.options(),
                            error));
  }
}

}  // namespace

void add_generate(CLI::App& app) {
  auto flags = std::make_shared<GenerateFlags>();
  CLI::App* command = app.add_subcommand("generate", "Generate images from captions");
  flags->jobs.add(*command, ", each line generated as it arrives if --output numbers the images");
  flags->continued.add(*command, flags->jobs);
  flags->method.add(*command);
  flags->model.add_model(*command, false);
  flags->model.add_runtime(*command);
  flags->model.add_batch_size(*command);
  begin_group(*command, "Output");
  CLI::Option* overwrite = command->add_flag("--overwrite", flags->overwrite, "Replace files that exist");
  command
      ->add_flag("--skip-existing", flags->skip_existing,
                 "Keep images that exist and generate the others, with the seeds of a complete run")
      ->excludes(overwrite);
  command->add_option("--first-index", flags->first_index, "Number of the first image in names")
      ->type_name("N")
      ->capture_default_str();
  flags->files.add(*command);
  command->add_flag("--json", flags->json,
                    "Print one JSON line per image instead of its path; the times in it are of all images "
                    "that were generated side by side, except the image decoder's");
  command->add_flag("--no-metadata", flags->no_metadata, "Write no settings into the image files");
  begin_group(*command, "Options");
  command
      ->add_option("--params-from", flags->params_from,
                   "Use the settings that an image was generated with, except for flags that are given")
      ->type_name("IMAGE");
  command->add_option("--config", flags->config, kConfigHelp)->type_name("FILE");
  flags->logging.add(*command);
  add_examples(
      *command,
      {{"four images of a caption, in numbered files, with speculative decoding",
        "lamplighter generate -p \"a red boat on the sea at dawn\" -b 4 -o \"boat-%04d.png\" --method sjd"},
       {"the same images on a contact sheet, too",
        "lamplighter generate -p \"a red boat on the sea at dawn\" -b 4 -o boats/ --grid sheet.png"},
       {"an image for each line of standard input, named by its caption",
        "cat captions.txt | lamplighter generate --prompt-file - -o \"images/{index:04d}-{prompt}.png\""},
       {"several tokens a pass by a drafter, and a map of them",
        "lamplighter generate --method eagle -p \"a blue house in the snow\" -o house.png --acceptance-map "
        "map.png"},
       {"the lower half of an image anew, four times",
        "lamplighter generate -p \"a tent at night\" --save-codes tent.json -o tent.png\n"
        "  lamplighter generate -p \"a tent at dawn\" --from tent.json --keep-rows 8 --variations 4 -o "
        "\"tent-%d.png\""},
       {"the lower half of a photograph anew, for a bundle with an image encoder",
        "lamplighter generate -m bundle -p \"a tent at dawn\" --from tent.jpg --keep-rows 8 -o dawn.png"},
       {"a part of an image anew, the likeliest of eight beside what follows it",
        "lamplighter generate -p \"a red tent at night\" --from tent.json --region 80,112,160,112 "
        "--candidates "
        "8 "
        "-o red.png"},
       {"an image with the settings of another one, but other guidance",
        "lamplighter generate --params-from house.png --cfg-scale 4 -o again.png"}});
  ModelFlags::add_known_words(*command);
  command->callback([flags, command] {
    if (!flags->config.empty()) apply_config(*command, flags->config);
    const auto given = [&](const char* flag) { return command->get_option(flag)->count() != 0; };
    generate(*flags, {given("--seed"), given("--dtype"), given("--cache-dtype"), given("--output")});
  });
}

}  // namespace lamplighter::cli

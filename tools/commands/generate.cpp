#include <cmath>
#include <memory>

#include "base/files.h"
#include "base/stopwatch.h"
#include "base/utf8.h"
#include "codes_file.h"
#include "commands.h"
#include "image/acceptance_map.h"
#include "lamplighter/error.h"
#include "lamplighter/image.h"
#include "lamplighter/pipeline.h"
#include "metadata.h"
#include "outputs.h"
#include "preview.h"
#include "report.h"
#include "requests.h"
#include "signals.h"
#include "terminal.h"
#include "trace.h"

namespace lamplighter::cli {
namespace {

struct GenerateFlags {
  ModelFlags model;
  JobFlags jobs;
  MethodFlags method;
  TalkFlags talk;
  std::string grid, save_codes, trace, acceptance_map, preview, params_from, config;
  bool overwrite = false, json = false, no_metadata = false;
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
  Recorded recorded;                           // of --params-from
  std::vector<std::string> paths;              // of the pictures
  std::vector<std::int64_t> tokens_before{0};  // of the jobs before each, and of all
};

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

// Checks requests, method and outputs against the manifest; reads no weights.
void check_plan(const GenerateFlags& flags, const Manifest& manifest, Plan& plan) {
  std::vector<OutputRequest> outputs;
  for (const Job& job : plan.jobs) {
    check_request(manifest, job);
    const Grid& grid = find_grid(manifest, job.request.width, job.request.height);
    plan.tokens_before.push_back(plan.tokens_before.back() + grid.tokens());
    outputs.push_back({job.output, outputs.size(), job.request.seed});
  }
  resolve_method(plan.method, manifest);
  plan.paths = expand_outputs(outputs);
  std::vector<std::string> all = plan.paths;
  check_picture_name("--grid", flags.grid);
  check_picture_name("--acceptance-map", flags.acceptance_map);
  check_picture_name("--preview", flags.preview);
  for (const std::string& path :
       {flags.grid, flags.save_codes, flags.trace, flags.acceptance_map, flags.preview}) {
    if (!path.empty()) all.push_back(path);
  }
  check_distinct(all);
  prepare_outputs(outputs, all, flags.overwrite);
}

// Draws and writes the pictures of a plan.
class Run {
 public:
  Run(const GenerateFlags& flags, const Plan& plan, TextToImage& engine, Terminal& terminal)
      : flags_(flags),
        plan_(plan),
        engine_(engine),
        terminal_(terminal),
        origin_(describe_origin(engine)),
        preview_(flags.preview, engine, plan.jobs) {}

  void draw() {
    note_changes();
    std::vector<Request> requests;
    for (const Job& job : plan_.jobs) requests.push_back(job.request);
    {
      const OrderlyStop orderly;
      engine_.generate(
          requests, [&](std::size_t i, Result&& result) { finish(i, std::move(result)); },
          [&](const Progress& progress) {
            terminal_.progress(plan_.tokens_before[progress.first_request] + progress.tokens_done,
                               plan_.tokens_before.back());
            if (!flags_.preview.empty()) preview_.update(progress);
            return stop_signal() == 0;
          },
          plan_.method);
    }
    if (!flags_.trace.empty()) write_file(flags_.trace, trace_);
    if (!flags_.acceptance_map.empty()) write_png(flags_.acceptance_map, acceptance_map(maps_));
    if (!flags_.save_codes.empty()) write_codes(flags_.save_codes, codes_);
    if (!flags_.grid.empty()) {
      const int columns = static_cast<int>(std::ceil(std::sqrt(static_cast<double>(pictures_.size()))));
      write_png(flags_.grid, contact_sheet(pictures_, columns));
    }
  }

 private:
  void note_changes() {
    const Recorded& recorded = plan_.recorded;
    if (recorded.model != origin_.model || recorded.manifest_sha256 == origin_.manifest_sha256) return;
    terminal_.say("note: " + flags_.params_from + " was drawn with other files of bundle " + origin_.model +
                  " (weights, drafter or tree); pixels may differ");
  }

  void finish(std::size_t i, Result&& result) {
    const Request& request = plan_.jobs[i].request;
    const std::string& path = plan_.paths[i];
    const Json picture = describe_picture(origin_, request, result);
    write_png(path, result.image, flags_.no_metadata ? PngText() : png_text(picture));
    terminal_.say(std::to_string(i + 1) + "/" + std::to_string(plan_.jobs.size()) + " " + path + ": seed " +
                  std::to_string(result.seed) + ", " + summary(result.statistics));
    for (const std::string& line : details(result.statistics)) terminal_.detail(line);
    terminal_.result(
        flags_.json
            ? report(path, picture, result.statistics).dump(-1, ' ', false, Json::error_handler_t::replace)
            : path);
    if (!flags_.preview.empty()) preview_.finish(i, result.image);
    if (!flags_.trace.empty()) trace_ += trace_lines(i, result.statistics);
    if (!flags_.acceptance_map.empty()) {
      const Codes& codes = result.codes;
      maps_.push_back(
          {result.image, codes.rows, codes.columns, committed_with(result.statistics, codes.ids.size())});
    }
    if (!flags_.save_codes.empty()) codes_.push_back({result.codes, picture});
    if (!flags_.grid.empty()) pictures_.push_back(std::move(result.image));
    if (stop_signal() != 0) throw Error(ExitCode::interrupted, "stopped");
  }

  const GenerateFlags& flags_;
  const Plan& plan_;
  TextToImage& engine_;
  Terminal& terminal_;
  Origin origin_;
  Preview preview_;
  std::string trace_;
  std::vector<AcceptanceGrid> maps_;
  std::vector<SavedCodes> codes_;
  std::vector<Image> pictures_;
};

void generate(const GenerateFlags& flags, const Given& given) {
  Terminal terminal(flags.talk);
  Plan plan = read_flags(flags, given, terminal);
  const Manifest manifest = read_manifest(flags.model.folder());
  check_drawable(manifest);
  check_plan(flags, manifest, plan);
  Stopwatch watch;
  TextToImage engine(flags.model.folder(), plan.runtime);
  terminal.detail("bundle " + manifest.name + " on " + engine.device() + " in " + engine.dtype() +
                  ", checked in " + format_fixed(watch.lap(), 0) + " ms");
  Run(flags, plan, engine, terminal).draw();
}

}  // namespace

void add_generate(CLI::App& app) {
  auto flags = std::make_shared<GenerateFlags>();
  CLI::App* command = app.add_subcommand("generate", "Draw pictures from captions");
  flags->model.add_model(*command, false);
  flags->jobs.add(*command);
  flags->method.add(*command, true);
  flags->model.add_runtime(*command);
  command
      ->add_option("--batch-size", flags->model.runtime.batch_size,
                   "Pictures drawn side by side; the next takes the place of one that is complete")
      ->type_name("N");
  command->add_flag("--overwrite", flags->overwrite, "Replace files that exist");
  command->add_option("--grid", flags->grid, "Also write all pictures on one sheet")->type_name("FILE");
  command
      ->add_option("--save-codes", flags->save_codes, "Also write the image tokens, for `lamplighter decode`")
      ->type_name("FILE");
  command->add_option("--trace", flags->trace, "Also write every cycle of every picture, as JSON lines")
      ->type_name("FILE");
  command
      ->add_option("--acceptance-map", flags->acceptance_map,
                   "Also write the pictures beside their tokens, coloured by how many came at once")
      ->type_name("FILE");
  command
      ->add_option("--preview", flags->preview, "Rewrite this picture whenever a row of tokens is complete")
      ->type_name("FILE");
  command->add_flag("--json", flags->json, "Print one JSON line per picture instead of its path");
  command->add_flag("--no-metadata", flags->no_metadata, "Write no text into the PNG files");
  command->add_option("--params-from", flags->params_from, "Take what is not given here from a picture")
      ->type_name("IMAGE");
  command->add_option("--config", flags->config, "JSON file with flags: {\"cfg_scale\": 5}")
      ->type_name("FILE");
  flags->talk.add(*command);
  command->footer(
      "Example: lamplighter generate -p \"a white lighthouse on the coast at dusk\" -o lighthouse.png");
  command->callback([flags, command] {
    if (!flags->config.empty()) apply_config(*command, flags->config);
    const auto given = [&](const char* flag) { return command->get_option(flag)->count() != 0; };
    generate(*flags, {given("--seed"), given("--dtype")});
  });
}

}  // namespace lamplighter::cli

#include <memory>

#include "base/files.h"
#include "base/json.h"
#include "bench/bench.h"
#include "commands.h"
#include "lamplighter/error.h"
#include "lamplighter/version.h"
#include "requests.h"
#include "signals.h"
#include "terminal.h"

namespace lamplighter::cli {
namespace {

constexpr const char* kPrompt = "a white lighthouse on the coast at dusk";

struct BenchFlags {
  ModelFlags model;
  JobFlags jobs;
  TalkFlags talk;
  std::vector<std::string> methods{"ar"};
  int repeats = 5;
  bool json = false;
  std::string export_json;
};

Json to_json(const Summary& s) {
  return {{"mean", s.mean}, {"min", s.min}, {"p10", s.p10}, {"p50", s.p50}, {"p90", s.p90}, {"max", s.max}};
}

Json to_json(const BenchReport& r) {
  return {{"method", r.method},
          {"samples", r.samples},
          {"tokens_per_second", to_json(r.tokens_per_second)},
          {"token_ms", to_json(r.token_ms)},
          {"text_ms", to_json(r.text_ms)},
          {"prefill_ms", to_json(r.prefill_ms)},
          {"decode_ms", to_json(r.decode_ms)},
          {"image_ms", to_json(r.image_ms)},
          {"tokens_per_pass", r.tokens_per_pass}};
}

Json to_json(const BenchSample& s) {
  const Statistics& t = s.statistics;
  return {{"method", s.method},    {"repeat", s.repeat},         {"seed", s.seed},
          {"tokens", t.tokens},    {"batch", t.batch},           {"target_passes", t.target_passes},
          {"text_ms", t.text_ms},  {"prefill_ms", t.prefill_ms}, {"decode_ms", t.decode_ms},
          {"image_ms", t.image_ms}};
}

Json to_json(const BenchFlags& flags, const TextToImage& engine, const std::vector<BenchSample>& samples) {
  Json reports = Json::array(), raw = Json::array();
  for (const BenchReport& one : report(samples)) reports.push_back(to_json(one));
  for (const BenchSample& sample : samples) raw.push_back(to_json(sample));
  return {{"version", kVersion},
          {"model", engine.manifest().name},
          {"device", engine.device()},
          {"dtype", engine.dtype()},
          {"threads", flags.model.runtime.threads},
          {"batch_size", flags.model.runtime.batch_size},
          {"repeats", flags.repeats},
          {"methods", std::move(reports)},
          {"samples", std::move(raw)}};
}

std::string column(std::string text, std::size_t width) {
  return text.size() < width ? std::string(width - text.size(), ' ') + text : text;
}

void print_table(const std::vector<BenchReport>& reports, Terminal& terminal) {
  terminal.result(
      "method  tokens/s p50   p10   p90  ms/token p50   p10   p90  prefill ms  decode ms  image ms  "
      "tokens/pass");
  for (const BenchReport& r : reports) {
    const Summary &rate = r.tokens_per_second, &token = r.token_ms;
    terminal.result(
        r.method + std::string(r.method.size() < 6 ? 6 - r.method.size() : 0, ' ') +
        column(format_fixed(rate.p50, 0), 14) + column(format_fixed(rate.p10, 0), 6) +
        column(format_fixed(rate.p90, 0), 6) + column(format_fixed(token.p50, 3), 14) +
        column(format_fixed(token.p10, 3), 6) + column(format_fixed(token.p90, 3), 6) +
        column(format_fixed(r.prefill_ms.p50, 1), 12) + column(format_fixed(r.decode_ms.p50, 1), 11) +
        column(format_fixed(r.image_ms.p50, 1), 10) + column(format_fixed(r.tokens_per_pass, 2), 13));
  }
}

void bench(BenchFlags& flags) {
  Terminal terminal(flags.talk);
  const Manifest manifest = read_manifest(flags.model.folder());
  if (flags.repeats < 1) {
    throw Error(ExitCode::usage, "--repeats: got " + std::to_string(flags.repeats) + ", expected 1 or more");
  }
  Request defaults;
  if (manifest.prompt && manifest.prompt->kind == "class") {
    defaults.class_id = 0;
  } else {
    defaults.prompt = kPrompt;
  }
  if (!flags.export_json.empty()) check_output(flags.export_json, true);
  BenchOptions options;
  options.methods = flags.methods;
  options.repeats = flags.repeats;
  for (Job& job : make_jobs(flags.jobs, defaults, parse_seed(flags.jobs.seed))) {
    TextToImage::check(manifest, job.request);
    options.requests.push_back(std::move(job.request));
  }
  TextToImage engine(manifest.directory, flags.model.options());
  const OrderlyStop orderly;
  const std::vector<BenchSample> samples = run_bench(
      engine, options,
      [&](const BenchSample& sample) {
        terminal.detail(sample.method + " repeat " + std::to_string(sample.repeat) + ": decode " +
                        format_fixed(sample.statistics.decode_ms, 1) + " ms");
        return stop_signal() == 0;
      },
      [](const Progress&) { return stop_signal() == 0; });
  terminal.say("bundle " + manifest.name + " on " + engine.device() + " in " + engine.dtype() + ", " +
               "pictures: " + std::to_string(options.requests.size()) +
               ", measured rounds: " + std::to_string(flags.repeats) + " after one that is not counted");
  const Json json = to_json(flags, engine, samples);
  if (!flags.export_json.empty()) write_file(flags.export_json, json.dump(1) + "\n");
  if (flags.json) {
    terminal.result(json.dump());
  } else {
    print_table(report(samples), terminal);
  }
}

}  // namespace

void add_bench(CLI::App& app) {
  auto flags = std::make_shared<BenchFlags>();
  CLI::App* command = app.add_subcommand("bench", "Measure how fast pictures are drawn");
  flags->model.add_model(*command, false);
  flags->jobs.add(*command);
  command->remove_option(command->get_option("--output"));
  flags->model.add_runtime(*command);
  command->add_option("--batch-size", flags->model.runtime.batch_size, "Pictures drawn together")
      ->type_name("N");
  command->add_option("--methods", flags->methods, "Decoding methods, separated by commas: ar")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("LIST");
  command->add_option("--repeats", flags->repeats, "Measured rounds over all pictures")->type_name("N");
  command->add_flag("--json", flags->json, "Print JSON with all samples instead of a table");
  command->add_option("--export-json", flags->export_json, "Also write that JSON to a file")
      ->type_name("FILE");
  flags->talk.add(*command);
  command->callback([flags] { bench(*flags); });
}

}  // namespace lamplighter::cli

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>

#include "base/json.h"
#include "batch/collect.h"
#include "batch/run.h"
#include "batch/status.h"
#include "bench/auto_method.h"
#include "bundle/machine.h"
#include "commands.h"
#include "lamplighter/error.h"
#include "lamplighter/method.h"
#include "tools/flags.h"
#include "tools/help.h"
#include "tools/signals.h"
#include "tools/terminal.h"

namespace lamplighter::cli {
namespace {

struct BatchFlags {
  BatchOptions options;
  ModelFlags model;
  MethodFlags method;
  SamplingFlags sampling;
  TalkFlags talk;
  std::string seed = "42", shard, queue, config, status, merge;
  std::vector<std::string> merged;
  int shards = 0;
  bool json = false, no_metadata = false, dry_run = false;
};

// Tells of a run: a bar on a terminal, a line a minute elsewhere, or events.
class BatchReporter {
 public:
  BatchReporter(const BatchFlags& flags, Terminal& terminal) : flags_(flags), terminal_(terminal) {}

  void begin(const BatchPlan& plan, const Shard& shard) {
    const std::size_t present = plan.part - plan.missing.size();
    if (flags_.json) {
      return event({{"event", "begin"},
                    {"pictures", plan.part},
                    {"present", present},
                    {"shard", shard.index},
                    {"shards", shard.count}});
    }
    terminal_.say(std::to_string(plan.part) + " pictures of " + std::to_string(plan.plan.captions) +
                  " captions" +
                  (shard.count > 1 ? ", shard " + std::to_string(shard.index) + " of " +
                                         std::to_string(shard.count) + " by " + shard.source
                                   : "") +
                  (present > 0 ? "; " + std::to_string(present) + " are there" : ""));
    if (plan.misunderstood == 0) return;
    terminal_.say("note: " + std::to_string(plan.misunderstood) + " of " +
                  std::to_string(plan.plan.captions) +
                  " captions name no subject that the bundle can draw, or have words that it does not know; "
                  "`lamplighter inspect` lists what it knows");
  }

  void progress(const BatchProgress& progress) {
    if (flags_.json) return;
    if (terminal_.has_bar()) {
      terminal_.progress(
          static_cast<double>(progress.present + progress.failed + progress.drawn) + progress.in_work,
          static_cast<double>(progress.pictures), "pictures", compression(progress));
      return;
    }
    const auto now = std::chrono::steady_clock::now();
    if (now - told_ < std::chrono::minutes(1)) return;
    told_ = now;
    const double seconds = std::chrono::duration<double>(now - began_).count();
    const double rate = static_cast<double>(progress.drawn) / seconds;
    const std::size_t stand = progress.present + progress.drawn + progress.failed;
    const std::string left =
        rate > 0 ? ", " + format_duration(static_cast<double>(progress.pictures - stand) / rate) + " left"
                 : "";
    terminal_.say(std::to_string(stand) + "/" + std::to_string(progress.pictures) + " pictures, " +
                  format_fixed(rate, 2) + " pictures/s, " + compression(progress) + left);
  }

  void picture(const Record& record, const BatchProgress& progress) {
    if (flags_.json) {
      Json json{{"event", "picture"}};
      json.update(to_json(record));
      event(json);
    } else if (record.is_failed()) {
      terminal_.say(flags_.options.folder + ": picture " + std::to_string(record.index) + " (repeat " +
                    std::to_string(record.repeat) + ", seed " + std::to_string(record.seed) +
                    ") failed: " + record.error);
    } else {
      terminal_.detail(record.file + ": " + format_fixed(record.step_compression(), 2) + " tokens a pass, " +
                       format_fixed(record.decode_ms / 1000, 2) + " s");
    }
    this->progress(progress);
  }

  void end(const BatchProgress& progress) {
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
    if (flags_.json) {
      return event({{"event", "end"},
                    {"pictures", progress.pictures},
                    {"present", progress.present},
                    {"drawn", progress.drawn},
                    {"failed", progress.failed},
                    {"seconds", seconds}});
    }
    terminal_.say(std::to_string(progress.drawn) + " pictures drawn in " + format_duration(seconds) +
                  (progress.drawn > 0
                       ? ", " + format_fixed(static_cast<double>(progress.drawn) / seconds, 2) +
                             " pictures/s, " + compression(progress)
                       : "") +
                  (progress.failed > 0 ? ", " + std::to_string(progress.failed) + " failed" : ""));
    if (progress.cut > 0) {
      terminal_.say("note: pictures of captions that are longer than the bundle reads: " +
                    std::to_string(progress.cut) +
                    "; what was not read stands in the manifest (\"cut\") and in their metadata");
    }
    terminal_.result(flags_.options.folder);
  }

 private:
  static std::string compression(const BatchProgress& progress) {
    const double passes = static_cast<double>(std::max<std::int64_t>(1, progress.target_passes));
    return format_fixed(static_cast<double>(progress.tokens) / passes, 2) + " tokens a pass";
  }
  void event(const Json& json) { terminal_.result(to_text(json)); }

  const BatchFlags& flags_;
  Terminal& terminal_;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now(), told_ = began_;
};

// A launcher that starts several processes on one machine gives each a device of its own.
void choose_device(const Shard& shard, RuntimeOptions& runtime) {
  const int devices = count_cuda_devices();
  if (devices > 1 && (runtime.device == "auto" || runtime.device == "cuda"))
    runtime.device = "cuda:" + std::to_string(shard.local % devices);
}

void read_flags(BatchFlags& flags, Terminal& terminal) {
  BatchOptions& options = flags.options;
  options.plan.seed = parse_seed(flags.seed);
  if (flags.seed == "-1") {
    throw Error(ExitCode::usage,
                "--seed: got -1, expected a number: a run that is resumed draws the same pictures");
  }
  flags.sampling.apply(options.plan.defaults);
  options.bundle = flags.model.folder();
  options.runtime = flags.model.options();
  options.method = flags.method.options;
  options.metadata = !flags.no_metadata;
  options.shard = find_shard(flags.shard, flags.shards, [](const char* name) { return std::getenv(name); });
  options.queue.serves = options.shard.index == 0;
  choose_device(options.shard, options.runtime);
  options.method = choose_method(options.method, read_manifest(options.bundle), options.runtime,
                                 static_cast<std::size_t>(options.runtime.batch_size), terminal.sayer());
}

void batch(BatchFlags& flags) {
  Terminal terminal(flags.talk);
  if (!flags.status.empty()) return terminal.result(describe_status(flags.status));
  if (!flags.merge.empty()) {
    merge(flags.merge, flags.merged);
    return terminal.result(describe_status(flags.merge));
  }
  if (flags.options.plan.captions.empty())
    throw Error(ExitCode::usage, "captions: got none, expected a caption file, or - for standard input");
  if (flags.options.folder.empty()) throw Error(ExitCode::usage, "output: got none, expected a folder");
  read_flags(flags, terminal);
  const BatchPlan plan = plan_batch(flags.options);
  BatchReporter reporter(flags, terminal);
  reporter.begin(plan, flags.options.shard);
  if (flags.dry_run) return terminal.result(describe_estimate(flags.options, plan));
  const OrderlyStop orderly;
  BatchCalls calls;
  calls.progress = [&](const BatchProgress& progress) { reporter.progress(progress); };
  calls.picture = [&](const Record& record, const BatchProgress& progress) {
    reporter.picture(record, progress);
  };
  calls.go_on = [] { return stop_signal() == 0; };
  const BatchProgress progress = run_batch(flags.options, plan, calls);
  reporter.end(progress);
  if (progress.failed > 0) {
    throw Error(ExitCode::some_failed, std::to_string(progress.failed) + " of " +
                                           std::to_string(progress.pictures) +
                                           " pictures could not be drawn; the same command tries them again");
  }
}

void add_input(CLI::App& command, BatchFlags& flags) {
  PlanOptions& plan = flags.options.plan;
  command
      .add_option("--captions,captions", plan.captions,
                  "COCO's caption file, JSON array, JSON lines, TSV, plain text, or a folder of .txt; - = "
                  "standard input")
      ->type_name("FILE");
  command.add_option("--format", plan.format, "auto, coco, json, jsonl, tsv or text")->type_name("NAME");
  command
      .add_option("--select", plan.select, "Of the captions of an image: all, first, longest or random:SEED")
      ->type_name("RULE");
  command.add_option("--offset", plan.offset, "Pass over so many captions")->type_name("N");
  command.add_option("--limit", plan.limit, "Draw at most so many captions")->type_name("N");
  command.add_option("-b,--batch-count", plan.repeats, "Pictures a caption")->type_name("N");
  command
      .add_option("-s,--seed", flags.seed,
                  "Picture r of caption i draws with seed + i x batch count + r (default: 42)")
      ->type_name("N");
}

void add_output(CLI::App& command, BatchFlags& flags) {
  BatchOptions& options = flags.options;
  command.add_option("-o,--output", options.folder, "Folder of the run")->type_name("DIR");
  std::string meanings = "Names and what stands beside images/: " + layout_names();
  command.add_option("--layout", options.plan.layout, meanings)->type_name("NAME");
  command
      .add_option(
          "--name", options.plan.name,
          "Pattern of names: {index:05d}, {image_id:012d}, {id}, {repeat}, {seed} (default: the layout's)")
      ->type_name("PATTERN");
  command.add_flag("--no-metadata", flags.no_metadata, "Write no text into the PNG files");
  command.add_flag("--verify", options.verify, "Compare the pictures that are there with their checksums");
  command.add_flag("--force-config", options.force_config, "Go on with a run under another configuration");
  command.add_option("--retry", options.retries, "Further tries of a picture that could not be drawn")
      ->type_name("N");
}

void add_processes(CLI::App& command, BatchFlags& flags) {
  const auto add = [&](const char* name, auto& value, const char* type, const char* meaning) {
    command.add_option(name, value, meaning)->type_name(type)->group("Many processes");
  };
  add("--shard", flags.shard, "I/N",
      "Draw part I of N (default: what torchrun, Slurm, Open MPI or Kubernetes say)");
  add("--shards", flags.shards, "N", "How many there are, where the launcher does not say");
  add("--queue", flags.options.queue.address, "HOST:PORT",
      "Share captions while they are drawn; process 0 serves at this address");
  add("--lease", flags.options.queue.lease_seconds, "N",
      "With a queue: seconds of silence after which a process is lost (default: 60)");
  add("--merge", flags.merge, "DIR",
      "Join the manifests of shards in this folder, after taking over FOLDERS");
  add("--from", flags.merged, "FOLDERS", "With --merge: folders of shards on other disks");
}

}  // namespace

void add_batch(CLI::App& app) {
  auto flags = std::make_shared<BatchFlags>();
  CLI::App* command =
      app.add_subcommand("batch", "Draw a caption set into a folder; begun again, it goes on");
  begin_group(*command, "Captions");
  add_input(*command, *flags);
  begin_group(*command, "Output");
  add_output(*command, *flags);
  flags->model.add_model(*command, false);
  flags->sampling.add(*command);
  flags->method.add(*command);
  flags->model.add_runtime(*command);
  flags->model.add_batch_size(*command);
  add_processes(*command, *flags);
  begin_group(*command, "Options");
  command->add_flag("--dry-run", flags->dry_run,
                    "Check everything and estimate time and disk; draw nothing that stays");
  command->add_option("--status", flags->status, "Tell where the run in this folder stands")
      ->type_name("DIR");
  command->add_flag("--json", flags->json, "Print events as JSON lines");
  command->add_option("--config", flags->config, "JSON file with flags: {\"cfg_scale\": 5}")
      ->type_name("FILE");
  flags->talk.add(*command);
  std::string names = "Layouts";
  for (const Layout& layout : layouts()) names += "\n  " + std::string(layout.name) + ": " + layout.meaning;
  command->footer(command->get_footer() + "\n\n" + names);
  add_examples(*command, {{"COCO's captions, one an image; the same command goes on where it stopped",
                           "lamplighter batch --captions captions_val2017.json --select longest -o out/"},
                          {"time and disk that this would take",
                           "lamplighter batch --captions captions.txt -o out/ --dry-run"},
                          {"a quarter of it by hand; torchrun, Slurm and others number their processes",
                           "lamplighter batch --captions captions.txt -o out/ --shard 0/4"},
                          {"where it stands", "lamplighter batch --status out/"}});
  command->callback([flags, command] {
    if (!flags->config.empty()) apply_config(*command, flags->config);
    batch(*flags);
  });
}

}  // namespace lamplighter::cli

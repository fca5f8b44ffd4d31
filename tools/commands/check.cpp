#include <array>
#include <cstdio>
#include <map>
#include <memory>

#include "base/format.h"
#include "bundle/modules/check.h"
#include "lamplighter/error.h"
#include "tools/commands/commands.h"
#include "tools/flags.h"
#include "tools/help.h"
#include "tools/terminal.h"

namespace lamplighter::cli {
namespace {

struct CheckFlags {
  ModelFlags model;
  LogFlags logging;
};

std::string scientific(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3g", value);
  return text.data();
}

// The worst result of a module over its records.
struct Worst {
  double difference = 0, tolerance = 0, distance = 0;
  std::size_t records = 0;
  bool passed = true;
};

void check(const CheckFlags& flags) {
  Terminal terminal(flags.logging);
  const Manifest manifest = read_manifest(flags.model.folder());
  verify_files(manifest, true);
  terminal.result("checksums match: " + counted(manifest.files.size(), "file"));
  if (!manifest.golden) {
    terminal.result("recorded results: none in this bundle");
    return;
  }
  RuntimeOptions options = flags.model.runtime;
  options.dtype = "fp32";
  const Placement placement = resolve_placement(options);
  std::map<std::string, Worst> modules;
  for (const CheckResult& result : check_modules(manifest, placement.device, [&](const CheckResult& done) {
         terminal.detail(done.module + "." + done.method + ": max |difference| " +
                         scientific(done.difference) + ", tolerance " + scientific(done.tolerance));
       })) {
    Worst& worst = modules[result.module];
    // The worst record is closest to its own tolerance, or exceeds it most.
    const bool worse =
        worst.records++ == 0 || !(result.difference / result.tolerance <= worst.difference / worst.tolerance);
    if (worse) worst.difference = result.difference, worst.tolerance = result.tolerance;
    worst.distance = std::max(worst.distance, result.distance);
    worst.passed = worst.passed && result.passed();
  }
  std::string failed;
  for (const auto& [name, worst] : modules) {
    terminal.result(name + ": " + (worst.passed ? "ok" : "FAILED") + ", " + counted(worst.records, "record") +
                    ", max |difference| " + scientific(worst.difference) + ", tolerance " +
                    scientific(worst.tolerance) +
                    (worst.distance > 0 ? ", " + format_fixed(100 * worst.distance, 2) +
                                              " % from bf16 (rounded weights, root mean square)"
                                        : ""));
    if (!worst.passed) failed += (failed.empty() ? "" : ", ") + name;
  }
  if (!failed.empty()) {
    throw Error(ExitCode::bundle,
                "bundle " + manifest.directory + ": results differ from the recorded ones: " + failed);
  }
}

}  // namespace

void add_check(CLI::App& app) {
  auto flags = std::make_shared<CheckFlags>();
  CLI::App* command = app.add_subcommand("check", "Compare a bundle with its checksums and recorded results");
  flags->model.add_model(*command, true);
  flags->model.add_runtime(*command);
  for (const char* recorded : {"--dtype", "--cache-dtype"})
    command->remove_option(command->get_option(recorded));  // records fix the precision
  command->remove_option(command->get_option("--skip-checksums"));
  flags->logging.add(*command);
  add_examples(*command,
               {{"check the demo bundle", "lamplighter check"},
                {"check an exported bundle on a GPU", "lamplighter check bundles/anole --device cuda"}});
  command->callback([flags] { check(*flags); });
}

}  // namespace lamplighter::cli

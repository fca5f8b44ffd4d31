#include "pipeline/choose_method.h"

#include <string>

#include "base/format.h"
#include "draft/auto.h"
#include "draft/registry.h"
#include "lamplighter/error.h"

namespace lamplighter {
namespace {

// A run that cannot be kept is measured again next time.
void keep(const Manifest& manifest, const Placement& placement, const TableRun& run,
          const LogCallback& note) {
  try {
    save_table(manifest, placement, run, {});
  } catch (const Error& error) {
    note("note: the measurement is not kept: " + std::string(error.what()));
  }
}

std::optional<FastestMethod> measured(const Manifest& manifest, const Placement& placement, int batch_size,
                                      const LogCallback& note, const MeasureMethods& measure) {
  note("method auto: measuring the methods for " + words_of(machine_key(placement)) + ", once");
  try {
    const std::optional<TableRun> run = measure(batch_size);
    if (!run) return std::nullopt;
    keep(manifest, placement, *run, note);
    return fastest_lossless({*run}, batch_size, manifest, placement.device.is_cpu() ? "cpu" : "cuda");
  } catch (const Error& error) {
    if (error.code() != ExitCode::memory) throw;
    note("note: the methods are not measured: " + std::string(error.what()));
    return std::nullopt;
  }
}

}  // namespace

MethodOptions choose_method(const MethodOptions& wanted, const Manifest& manifest, const Placement& placement,
                            int batch_size, const LogCallback& note, const MeasureMethods& measure) {
  if (!is_auto(wanted)) return wanted;
  const LogCallback log = note ? note : [](const std::string&) {};
  const std::string device = placement.device.is_cpu() ? "cpu" : "cuda";
  std::optional<FastestMethod> found =
      fastest_lossless(saved_runs(manifest, placement, log), batch_size, manifest, device);
  if (!found) found = measured(manifest, placement, batch_size, log, measure);
  const MethodOptions chosen = found ? found->row.method : MethodOptions{};
  std::string why = "because this bundle's methods were not measured here; bench --save-table measures them";
  if (found) {
    const bool is_baseline = chosen.method == kBaseline;
    why = (is_baseline ? "because no lossless method is " : "") +
          (is_baseline ? format_fixed(kLeastSpeedup, 2) : format_fixed(found->row.speedup, 2)) +
          " times as fast as " + (is_baseline ? "it" : "ar") +
          (found->is_trial ? " by a short measurement on " : " when measured on ") +
          words_of(machine_key(placement)) + " at batch size " + std::to_string(found->batch_size);
  }
  log("method auto: " + words_of(chosen) + ", " + why);
  return chosen;
}

}  // namespace lamplighter

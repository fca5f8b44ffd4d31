#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "device/placement.h"
#include "draft/method_table.h"
#include "lamplighter/method.h"

// The method auto and its table of measured speeds in the user's cache folder. pipeline/choose_method.h
// chooses.
namespace lamplighter {

constexpr const char* kAutoMethod = "auto";
constexpr const char* kSaveTable = "Store the speeds in the user's cache folder, for --method auto";

// Throws Error(usage) where auto comes with options, and for an unknown method.
bool is_auto(const MethodOptions& wanted);

// Images that are generated together.
inline int batch_of(std::size_t images, int most) {
  return static_cast<int>(std::clamp<std::size_t>(images, 1, static_cast<std::size_t>(most)));
}

// Whether a method keeps the target's distribution.
bool is_lossless(const MethodOptions& resolved);

// A speed-up up to this may be noise: the baseline is taken.
constexpr double kLeastSpeedup = 1.03;

struct FastestMethod {
  TableRow row;
  int batch_size = 1;  // of the run that was nearest
  bool is_trial = false;
};
// The fastest lossless method of the run with the nearest batch size, the baseline where none pays; nothing
// where no run has between half and twice the batch size. Of equally near runs, one that generated images
// counts more than a trial. Throws what resolve_method throws.
std::optional<FastestMethod> fastest_lossless(const std::vector<TableRun>& runs, int batch_size,
                                              const Manifest& manifest, const std::string& device);

// The runs of the table for a bundle and this machine; none where it is missing or damaged, which
// `note` receives.
std::vector<TableRun> saved_runs(const Manifest& manifest, const Placement& placement,
                                 const LogCallback& note);

// The tables for a bundle, of all machines.
std::vector<SavedTable> saved_tables(const Manifest& manifest);

// The key of this machine, without a bundle.
TableKey machine_key(const Placement& placement);
// Processor, instructions, precision, threads.
std::string words_of(const TableKey& key);
// "eagle tree=chain-3"
std::string words_of(const MethodOptions& method);

// Throws Error(ExitCode::output) where the user has no cache folder.
void require_cache_folder();

// Stores the lossless methods of a run in the user's cache folder. Throws Error(ExitCode::output).
void save_table(const Manifest& manifest, const Placement& placement, const TableRun& run,
                const LogCallback& note);

}  // namespace lamplighter

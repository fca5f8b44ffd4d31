#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "device/placement.h"
#include "draft/method_table.h"
#include "lamplighter/method.h"

// The method auto: the fastest lossless method by the table of measured speeds in the user's cache folder.
namespace lamplighter {

constexpr const char* kAutoMethod = "auto";
constexpr const char* kSaveTable = "Store the speeds in the user's cache folder, for --method auto";

// Throws Error(usage) where auto comes with options, and for an unknown method.
bool is_auto(const MethodOptions& wanted);

// Images that are generated together.
inline int batch_of(std::size_t images, int most) {
  return static_cast<int>(std::clamp<std::size_t>(images, 1, static_cast<std::size_t>(most)));
}

// The public choose_method (lamplighter/method.h) for a known placement and batch size.
MethodOptions choose_method(const MethodOptions& wanted, const Manifest& manifest, const Placement& placement,
                            int batch_size, const LogCallback& note);

// Whether a method keeps the target's distribution.
bool is_lossless(const MethodOptions& resolved);

// The first lossless method whose drafter the bundle has; empty where it has none.
std::string first_with_drafter(const Manifest& manifest);

// The choice without a measurement. On a CPU, where a drafter costs much beside a short window, it is a
// method without one, and the baseline where the CPU does not multiply bf16; elsewhere it is the first method
// whose drafter the bundle has.
MethodOptions default_lossless_method(const Manifest& manifest, const std::string& device);

struct FastestMethod {
  TableRow row;
  int batch_size = 1;  // of the run that was nearest
};
// The fastest lossless method of the run with the nearest batch size; none where none was measured. Throws
// what resolve_method throws.
std::optional<FastestMethod> fastest_lossless(const std::vector<TableRun>& runs, int batch_size,
                                              const Manifest& manifest, const std::string& device);

// Throws Error(ExitCode::output) where the user has no cache folder.
void require_cache_folder();

// Stores the lossless methods of a measured run in the user's cache folder. Throws Error(ExitCode::output).
void save_table(const Manifest& manifest, const Placement& placement, const TableRun& run,
                const LogCallback& note);

}  // namespace lamplighter

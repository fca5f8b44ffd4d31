#pragma once

#include <cstddef>

#include "bench/method_table.h"
#include "bundle/placement.h"
#include "tools/terminal.h"

namespace lamplighter::cli {

constexpr const char* kSaveTable = "Store what --method auto goes by in the user's cache folder";

// The method that draws `pictures` pictures: `wanted`, or where that is auto the fastest exact one by the
// table in the user's cache folder, else the bundle's default, with a line that says which and why. Throws
// Error(ExitCode::usage) where auto comes with options, and what resolve_placement throws.
MethodOptions choose_method(const MethodOptions& wanted, const Manifest& manifest,
                            const RuntimeOptions& runtime, std::size_t pictures, Terminal& terminal);

// Throws Error(ExitCode::output) where the user has no cache folder.
void require_cache_folder();

// Stores what was measured of a bundle for auto, in the user's cache folder. Methods that are not exact are
// left out. Throws Error(ExitCode::output).
void save_table(const Manifest& manifest, const Placement& placement, const TableRun& run,
                Terminal& terminal);

}  // namespace lamplighter::cli

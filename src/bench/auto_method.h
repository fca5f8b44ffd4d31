#pragma once

#include "bench/method_table.h"
#include "bundle/placement.h"
#include "lamplighter/method.h"

// What --method auto goes by (choose_method): tables of measured methods in the user's cache folder.
namespace lamplighter {

constexpr const char* kSaveTable = "Store what --method auto goes by in the user's cache folder";

// Throws Error(ExitCode::output) where the user has no cache folder.
void require_cache_folder();

// Stores what was measured of a bundle for auto, in the user's cache folder. Methods that are not exact are
// left out. Throws Error(ExitCode::output).
void save_table(const Manifest& manifest, const Placement& placement, const TableRun& run,
                const NoteCallback& note);

}  // namespace lamplighter

#pragma once

#include <cstddef>
#include <string>

#include "lamplighter/api.h"
#include "lamplighter/bundle.h"
#include "lamplighter/options.h"

namespace lamplighter {

// The method with every field set, checked for sense and against what the bundle holds; `device` (cpu, cuda)
// picks the bundle's tuned tree, and where it has none, one that suits `batch` pictures side by side. Reads
// tree files, no weights. Throws Error (usage, input, bundle).
LAMPLIGHTER_API MethodOptions resolve_method(const MethodOptions& method, const Manifest& manifest,
                                             const std::string& device = "cpu", int batch = 1);

// The method that draws `pictures` pictures: `wanted`, or where that is "auto" the fastest exact one by the
// table that `lamplighter bench --save-table` or `tune-tree --save-table` left in the user's cache folder for
// this bundle and machine, else the bundle's default; `note` is told which and why. Throws Error(usage) where
// auto comes with options, and (device).
LAMPLIGHTER_API MethodOptions choose_method(const MethodOptions& wanted, const Manifest& manifest,
                                            const RuntimeOptions& runtime, std::size_t pictures,
                                            const NoteCallback& note);

}  // namespace lamplighter

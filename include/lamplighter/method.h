#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "lamplighter/api.h"
#include "lamplighter/bundle.h"
#include "lamplighter/options.h"

namespace lamplighter {

// Names and meanings of all methods, the baseline first.
LAMPLIGHTER_API std::vector<std::pair<std::string, std::string>> method_meanings();

// The method with a value for every option that it reads and that has a default, checked against the bundle.
// `device` (cpu, cuda) selects the bundle's tuned tree; without one, the tree suits `batch` images side by
// side. Reads tree files, no weights. Throws Error (usage, input, bundle).
LAMPLIGHTER_API MethodOptions resolve_method(const MethodOptions& method, const Manifest& manifest,
                                             const std::string& device = "cpu", int batch = 1);

// The method for `images` images: `wanted`, or for "auto" the fastest lossless one by the table in the user's
// cache folder for this bundle and machine. `lamplighter bench --save-table` and `tune-tree --save-table`
// fill the table. Where it has no answer, the bundle is loaded, its methods are measured for some seconds,
// and the table keeps the result. `note` receives the choice and its reason. TextToImage does this with every
// method; call it to know the choice beforehand. Throws Error(usage) where auto comes with options,
// Error(device) and Error(bundle).
LAMPLIGHTER_API MethodOptions choose_method(const MethodOptions& wanted, const Manifest& manifest,
                                            const RuntimeOptions& runtime, std::size_t images,
                                            const LogCallback& note);

}  // namespace lamplighter

#pragma once

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

}  // namespace lamplighter

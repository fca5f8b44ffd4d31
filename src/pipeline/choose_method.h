#pragma once

#include <functional>
#include <optional>

#include "device/placement.h"
#include "draft/method_table.h"
#include "lamplighter/options.h"

namespace lamplighter {

// Measures the methods for images that are generated together; none where the bundle's cannot be measured.
// Throws Error(memory) where the machine cannot hold what that takes.
using MeasureMethods = std::function<std::optional<TableRun>(int batch_size)>;

// The public choose_method (lamplighter/method.h) for a known placement and batch size. Where the table has
// no answer, the methods are measured and the result is stored in it.
MethodOptions choose_method(const MethodOptions& wanted, const Manifest& manifest, const Placement& placement,
                            int batch_size, const LogCallback& note, const MeasureMethods& measure);

}  // namespace lamplighter

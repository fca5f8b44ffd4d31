#pragma once

#include "decode/prefill.h"
#include "decode/report.h"

// From prompt rows to image tokens.
namespace lamplighter {

// Called after every cycle; false stops the run with Error(ExitCode::interrupted).
using OnCycle = std::function<bool(const Report&)>;

// Draws images side by side; when one is complete, the next takes its slot. Throws Error(ExitCode::bundle)
// when the target gives no distribution.
void decode(const Models& models, const Method& method, const RunShape& shape, const NextImages& next,
            const OnCycle& on_cycle);

// The same for images that begin together: codebook indices int64 [I, rows * columns] on the CPU, raster
// order.
at::Tensor decode(const Models& models, const Method& method, const Prompts& prompts,
                  const std::vector<DecodeRequest>& requests, const Grid& grid, const OnCycle& on_cycle = {});

}  // namespace lamplighter

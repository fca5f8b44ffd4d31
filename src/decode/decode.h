#pragma once

#include "decode/prefill.h"
#include "decode/report.h"
#include "lamplighter/error.h"

// From prompt rows to image tokens.
namespace lamplighter {

// Called after every cycle; false stops the run with Error(ExitCode::interrupted).
using OnCycle = std::function<bool(const Report&)>;

// Where the target gives an image no distribution: the whole run fails, or the report says so and the image
// is for the caller to drop.
enum class BadTarget { fails, is_reported };

// Draws images side by side; when one is complete, the next takes its slot. Throws Error(ExitCode::bundle),
// bad_target(), where an image has no distribution and that fails.
void decode(const Models& models, const Method& method, const RunShape& shape, const NextImages& next,
            const OnCycle& on_cycle, BadTarget bad = BadTarget::fails);
Error bad_target();

// The same for images that begin together: codebook indices int64 [I, rows * columns] on the CPU, raster
// order.
at::Tensor decode(const Models& models, const Method& method, const Prompts& prompts,
                  const std::vector<DecodeRequest>& requests, const Grid& grid, const OnCycle& on_cycle = {});

}  // namespace lamplighter

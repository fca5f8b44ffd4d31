#pragma once

#include "base/json.h"
#include "lamplighter/bundle.h"

namespace lamplighter {

// Checks that the parts of a manifest fit together. Throws Error(ExitCode::bundle), which names the first two
// numbers that disagree. `reader` reads the manifest.
void check_agreement(JsonReader& reader, const Manifest& manifest);

}  // namespace lamplighter

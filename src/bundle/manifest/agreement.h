#pragma once

#include "base/json.h"
#include "lamplighter/bundle.h"

namespace lamplighter {

// Parts made by different exports of different models do not fit together: throws Error(ExitCode::bundle)
// that names the first two numbers of a manifest that disagree. `reader` is the manifest's.
void check_agreement(JsonReader& reader, const Manifest& manifest);

}  // namespace lamplighter

#pragma once

#include <string>

#include "decode/method.h"
#include "lamplighter/pipeline.h"

namespace lamplighter {

// A method as it was resolved, ready to run: trees parsed, tables on the device. `greedy`: the run is at
// temperature 0, where children are the most probable ones. Throws Error (input, bundle).
Method make_method(const MethodOptions& resolved, const Manifest& manifest, const c10::Device& device,
                   bool greedy);

}  // namespace lamplighter

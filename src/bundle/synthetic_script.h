#pragma once

#include <string>

#include "bundle/synthetic.h"

namespace lamplighter {

// TorchScript of a target and of a drafter, written out for one shape; `ops` are the operators of this
// library and `self` holds the buffers that make_synthetic registers. int8_weights: packed as exported
// drafters pack bf16 weights.
std::string target_script(const SyntheticShape& shape);
std::string drafter_script(const SyntheticShape& shape, bool int8_weights);

}  // namespace lamplighter

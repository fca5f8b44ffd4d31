#pragma once

#include <string>
#include <vector>

#include "lamplighter/bundle.h"

namespace lamplighter {

// Prompts of measurements that name none: captions, or codes for bundles whose prompts are lists of them.
std::vector<std::string> default_prompts(const Manifest& manifest);

}  // namespace lamplighter

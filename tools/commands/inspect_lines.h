#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "device/placement.h"

namespace lamplighter::cli {

using Lines = std::vector<std::pair<std::string, std::string>>;  // label and value
using Damage = std::map<std::string, std::string>;               // problem by file

// Describes a bundle for `inspect`.
Lines describe_bundle(const Manifest& manifest, const Damage& damage, const Placement& placement);

}  // namespace lamplighter::cli

#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "bundle/placement.h"

namespace lamplighter::cli {

using Lines = std::vector<std::pair<std::string, std::string>>;  // label and value
using Damage = std::map<std::string, std::string>;               // what is wrong, by file

// What `inspect` tells of a bundle in words.
Lines describe_bundle(const Manifest& manifest, const Damage& damage, const Placement& placement);

}  // namespace lamplighter::cli

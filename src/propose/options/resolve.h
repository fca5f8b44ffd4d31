#pragma once

#include <cstdint>
#include <string>

#include "acceptance/rules.h"
#include "lamplighter/bundle.h"

namespace lamplighter {

// The rule of a method that is not resolved. Throws Error(usage) for unknown methods and rules.
Rule rule_of(const MethodOptions& method);

// Names the drafter of a method that needs one of this kind: the bundle's first unless told. Throws
// Error(bundle) where it has none, Error(usage) for another one.
void resolve_drafter(MethodOptions& method, const std::string& kind, const Manifest& manifest);

// Methods of a bundle of continuous tokens. Throws Error (usage, bundle).
MethodOptions resolve_continuous(const MethodOptions& options, const Manifest& manifest);

// The value of the option `tree` that is no static tree.
constexpr const char* kDynamicTree = "dynamic";

// The static tree where neither the user nor the bundle names one. On a device it is the largest preset whose
// target passes, 2 x batch x nodes rows with guidance, stay where reading the weights takes longer than
// multiplying them: 150 rows suit an A100, an H200 takes about 200. Wide batches get chains. On a CPU, where
// every row costs time, a short chain.
std::string default_tree(const std::string& device, std::int64_t batch);

}  // namespace lamplighter

#pragma once

#include <cstdint>
#include <string>

namespace lamplighter {

// The value of the option `tree` that is no static tree.
constexpr const char* kDynamicTree = "dynamic";

// The static tree where neither the user nor the bundle names one. On a device it is the largest preset whose
// target passes, 2 x batch x nodes rows with guidance, stay where reading the weights takes longer than
// multiplying them: 150 rows suit an A100, an H200 takes about 200. Wide batches get chains. On a CPU, where
// every row costs time, a short chain.
std::string default_tree(const std::string& device, std::int64_t batch);

}  // namespace lamplighter

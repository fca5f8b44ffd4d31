#pragma once

#include <memory>
#include <string>

namespace torch::jit {
struct Graph;
struct Module;
}  // namespace torch::jit

namespace lamplighter {

// A copy of a method's graph, calls within it unfolded, in which products take in what stands around them:
// add_rms_norm behind a product becomes add_linear and rms_norm; a norm, or a norm and silu_mul, around a
// product becomes norm_linear. Same results up to rounding. Numbers and truth values among the module's
// attributes are taken as they are now. It takes what the method takes, the module first.
std::shared_ptr<torch::jit::Graph> fused_graph(const torch::jit::Module& module, const std::string& method);

}  // namespace lamplighter

#pragma once

#include <memory>
#include <string>

namespace torch::jit {
struct Graph;
struct Module;
}  // namespace torch::jit

namespace lamplighter {

// Returns a copy of a method's graph with inlined calls and fused products: add_rms_norm behind a product
// becomes add_linear and rms_norm; a norm, or a norm and silu_mul, around a product becomes norm_linear.
// Results are equal up to rounding. Numbers and booleans among the module's attributes become constants. The
// inputs are the module and then the method's arguments.
std::shared_ptr<torch::jit::Graph> fused_graph(const torch::jit::Module& module, const std::string& method);

}  // namespace lamplighter

#pragma once

#include <memory>

namespace torch::jit {
struct Function;
struct Graph;
}  // namespace torch::jit

namespace lamplighter {

// A copy of a method's graph, calls within it unfolded, in which products take in what stands around them:
// add_rms_norm behind a product becomes add_linear and rms_norm; a norm, or a norm and silu_mul, around a
// product becomes norm_linear. Same results up to rounding. It takes what the graph takes, self first.
std::shared_ptr<torch::jit::Graph> fused_graph(torch::jit::Function& method);

}  // namespace lamplighter

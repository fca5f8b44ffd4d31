#pragma once

#include <memory>
#include <string>

namespace torch::jit {
struct Graph;
struct Module;
}  // namespace torch::jit

namespace lamplighter {

// A copy of a method's graph, calls within it unfolded, that packs the weights of products in 8 or 4 bits
// where the method packs them as they are, and weights of drafters in 8. It takes what the method takes, the
// module first. Archives know nothing of precisions: their `prepare` says what is packed, this how.
std::shared_ptr<torch::jit::Graph> rounding_graph(const torch::jit::Module& module, const std::string& method,
                                                  int bits);

}  // namespace lamplighter

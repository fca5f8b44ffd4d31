#include "bundle/modules/rounding.h"

#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/passes/inliner.h>

namespace lamplighter {
namespace {

using torch::jit::Block;
using torch::jit::Node;

const auto kPack = c10::Symbol::fromQualString("lamplighter::pack_linear");
const auto kPackInt8 = c10::Symbol::fromQualString("lamplighter::pack_linear_int8");
const auto kPackBits = c10::Symbol::fromQualString("lamplighter::pack_linear_bits");

void round_in(Block* block, int bits) {
  for (auto node = block->nodes().begin(); node != block->nodes().end();) {
    Node* pack = *node++;
    for (Block* inner : pack->blocks()) round_in(inner, bits);
    if (pack->kind() != kPack && pack->kind() != kPackInt8) continue;
    torch::jit::Graph& graph = *block->owningGraph();
    const torch::jit::WithInsertPoint here(pack);
    const std::int64_t to = pack->kind() == kPack ? bits : 8;
    Node* rounded = graph.insertNode(graph.create(kPackBits, {pack->input(), graph.insertConstant(to)}));
    rounded->output()->setType(pack->output()->type());
    pack->output()->replaceAllUsesWith(rounded->output());
    pack->destroy();
  }
}

}  // namespace

std::shared_ptr<torch::jit::Graph> rounding_graph(const torch::jit::Module& module, const std::string& method,
                                                  int bits) {
  const torch::jit::Function& function = module.get_method(method).function();
  std::shared_ptr<torch::jit::Graph> graph = torch::jit::toGraphFunction(function).graph()->copy();
  torch::jit::Inline(*graph);
  round_in(graph->block(), bits);
  return graph;
}

}  // namespace lamplighter

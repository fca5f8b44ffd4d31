#include "bundle/modules/fuse.h"

#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/passes/constant_propagation.h>
#include <torch/csrc/jit/passes/dead_code_elimination.h>
#include <torch/csrc/jit/passes/inliner.h>
#include <torch/csrc/jit/passes/peephole_list_idioms.h>

#include <unordered_map>
#include <vector>

namespace lamplighter {
namespace {

using torch::jit::Block;
using torch::jit::Node;
using torch::jit::Value;

c10::Symbol symbol(const char* name) {
  return c10::Symbol::fromQualString(std::string("lamplighter::") + name);
}

bool is(const Node* node, const char* name) {
  return node->kind() == symbol(name);
}

// Whether no node between two nodes of a block can change a tensor.
bool adjacent(Node* first, Node* second) {
  if (first->owningBlock() != second->owningBlock()) return false;
  const auto harmless = [](const Node* node) {
    return node->kind() == c10::prim::Constant || node->kind() == c10::prim::GetAttr ||
           node->kind() == c10::prim::TupleUnpack;
  };
  for (Node* node = first->next(); node != second; node = node->next()) {
    if (!harmless(node)) return false;
  }
  return true;
}

// The only node that reads the value, right behind `maker`; null where others read it.
Node* only_reader(Value* value, Node* maker, const char* name) {
  if (value->uses().size() != 1) return nullptr;
  Node* user = value->uses().front().user;
  return is(user, name) && user->input(0) == value && maker->isBefore(user) && adjacent(maker, user)
             ? user
             : nullptr;
}

void apply(Block* block, void (*change)(Node*)) {
  std::vector<Node*> nodes;
  for (Node* node : block->nodes()) nodes.push_back(node);
  for (Node* node : nodes) {
    for (Block* inner : node->blocks()) apply(inner, change);
    change(node);
  }
}

// add_rms_norm(residual, linear(x, w), norm, eps): add_linear(residual, x, w) and rms_norm(residual, norm,
// eps). The product moves to the sum, so nothing between them may change its inputs.
void split_sum(Node* node) {
  if (!is(node, "add_rms_norm")) return;
  Value* branch = node->input(1);
  Node* product = branch->node();
  if (!is(product, "linear") || branch->uses().size() != 1 || !adjacent(product, node)) return;
  if (product->input(0) == node->input(0)) return;
  torch::jit::Graph* graph = node->owningGraph();
  const torch::jit::WithInsertPoint here(node);
  graph->insertNode(
      graph->create(symbol("add_linear"), {node->input(0), product->input(0), product->input(1)}, 0));
  Node* norm =
      graph->insertNode(graph->create(symbol("rms_norm"), {node->input(0), node->input(2), node->input(3)}));
  norm->output()->setType(node->output()->type());
  node->output()->replaceAllUsesWith(norm->output());
  node->destroy();
  product->destroy();
}

// linear(rms_norm(x, norm, eps), w, n), with silu_mul of it or without: norm_linear(x, norm, eps, w, n,
// gated).
void join_norm(Node* norm) {
  if (!is(norm, "rms_norm")) return;
  Node* product = only_reader(norm->output(), norm, "linear");
  if (product == nullptr) return;
  Node* gate = only_reader(product->output(), product, "silu_mul");
  Node* last = gate != nullptr ? gate : product;
  torch::jit::Graph* graph = norm->owningGraph();
  const torch::jit::WithInsertPoint here(last);
  Value* gated = graph->insertConstant(gate != nullptr);
  Node* joined =
      graph->insertNode(graph->create(symbol("norm_linear"), {norm->input(0), norm->input(1), norm->input(2),
                                                              product->input(1), product->input(2), gated}));
  joined->output()->setType(last->output()->type());
  last->output()->replaceAllUsesWith(joined->output());
  if (gate != nullptr) gate->destroy();
  product->destroy();
  norm->destroy();
}

// Numbers and booleans among the attributes of known owners become constants.
class Attributes {
 public:
  explicit Attributes(torch::jit::Graph& graph, const torch::jit::Module& module) : graph_(graph) {
    known_.emplace(graph.inputs().front(), module._ivalue());
    if (!changes(graph.block())) fold(graph.block());
  }

 private:
  static bool changes(Block* block) {
    for (Node* node : block->nodes()) {
      if (node->kind() == c10::prim::SetAttr) return true;
      for (Block* inner : node->blocks()) {
        if (changes(inner)) return true;
      }
    }
    return false;
  }

  void fold(Block* block) {
    for (Node* node : block->nodes()) {
      for (Block* inner : node->blocks()) fold(inner);
      if (node->kind() == c10::prim::GetAttr || node->kind() == c10::prim::TupleUnpack) look_up(node);
    }
  }

  void look_up(Node* node) {
    const auto owner = known_.find(node->input());
    if (owner == known_.end()) return;
    const c10::IValue from = owner->second;
    if (node->kind() == c10::prim::TupleUnpack) {
      for (std::size_t i = 0; i < node->outputs().size(); ++i) {
        known_.emplace(node->output(i), from.toTupleRef().elements()[i]);
      }
      return;
    }
    const c10::IValue value = from.toObjectRef().getAttr(node->s(c10::attr::name));
    if (value.isObject() || value.isTuple()) known_.emplace(node->output(), value);
    if (!value.isBool() && !value.isInt() && !value.isDouble()) return;
    const torch::jit::WithInsertPoint here(node);
    node->output()->replaceAllUsesWith(graph_.insertConstant(value));
  }

  torch::jit::Graph& graph_;
  std::unordered_map<const Value*, c10::IValue> known_;
};

}  // namespace

std::shared_ptr<torch::jit::Graph> fused_graph(const torch::jit::Module& module, const std::string& method) {
  torch::jit::Function& function = module.get_method(method).function();
  std::shared_ptr<torch::jit::Graph> graph = torch::jit::toGraphFunction(function).graph()->copy();
  torch::jit::Inline(*graph);
  const Attributes known(*graph, module);
  torch::jit::PeepholeOptimizeListIdioms(graph);  // the number of layers
  // Loops over layers are unrolled. The second time resolves conditions on numbers that the first time found.
  for (int i = 0; i < 2; ++i) torch::jit::ConstantPropagation(graph);
  torch::jit::EliminateDeadCode(graph);
  apply(graph->block(), split_sum);
  apply(graph->block(), join_norm);
  torch::jit::EliminateDeadCode(graph);
  return graph;
}

}  // namespace lamplighter

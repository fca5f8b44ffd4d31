#include "bundle/modules/fuse.h"

#include <ATen/Context.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/serialization/import.h>

#include <map>
#include <string>

#include "bundle/synthetic/modules.h"
#include "kernels/anchor.h"

// Methods of the demo's modules before and after fusion, on the CPU, where both run the same kernels.
namespace lamplighter {
namespace {

using torch::jit::Block;

constexpr std::int64_t kLayers = 8, kHeads = 3, kHeadDim = 64, kHidden = kHeads * kHeadDim;

torch::jit::Module demo(const std::string& name, at::ScalarType dtype) {
  lamplighter_ops_anchor();
  torch::jit::Module module =
      torch::jit::load(std::string(LAMPLIGHTER_SOURCE_DIR) + "/models/demo/bundle/" + name + ".pt");
  module.eval();
  module.get_method("prepare")({at::empty({0}, dtype)});
  return module;
}

void count(const Block* block, std::map<std::string, int>& kinds) {
  for (const auto* node : block->nodes()) {
    ++kinds[node->kind().toUnqualString()];
    for (const Block* inner : node->blocks()) count(inner, kinds);
  }
}

std::map<std::string, int> kinds_of(const torch::jit::Graph& graph) {
  std::map<std::string, int> kinds;
  count(graph.block(), kinds);
  return kinds;
}

// Runs the method, from its fused graph if asked. Returns its results and the cache afterwards.
std::vector<at::Tensor> run(const torch::jit::Module& module, const std::string& method, bool fused,
                            const std::vector<at::Tensor>& inputs, at::Tensor cache) {
  const auto found = module.get_method(method);
  torch::jit::Stack stack{module._ivalue()};
  stack.insert(stack.end(), inputs.begin(), inputs.end());
  // Archives take the cache after the lengths; some methods take one more argument after it.
  stack.insert(stack.begin() + 5, cache);
  if (fused) {
    torch::jit::GraphFunction function(method, fused_graph(module, method), nullptr);
    function.run(stack);
  } else {
    found.function().run(stack);
  }
  std::vector<at::Tensor> results{cache};
  for (const c10::IValue& value : stack.back().toTupleRef().elements()) results.push_back(value.toTensor());
  return results;
}

class FuseTest : public ::testing::TestWithParam<at::ScalarType> {
 protected:
  std::vector<at::Tensor> inputs() const {
    const at::Tensor x = at::randn({2, 3, kHidden}, at::kFloat).to(GetParam());
    const at::Tensor positions = at::arange(3, at::kLong).expand({2, 3}).contiguous();
    return {x, positions, at::empty({0}, at::kLong), at::zeros({2}, at::kLong)};
  }
  at::Tensor cache() const { return at::zeros({kLayers, 2, 2, kHeads, 8, kHeadDim}, GetParam()); }

  void expect_same(const std::string& method, std::vector<at::Tensor> arguments) const {
    const c10::InferenceMode inference;
    const torch::jit::Module target = demo("target", GetParam());
    const auto plain = run(target, method, false, arguments, cache());
    const auto fused = run(target, method, true, arguments, cache());
    ASSERT_EQ(plain.size(), fused.size());
    for (std::size_t i = 0; i < plain.size(); ++i) EXPECT_TRUE(at::equal(plain[i], fused[i])) << i;
  }
};

TEST_P(FuseTest, ATargetsResultsAreTheSame) {
  expect_same("forward", inputs());
}

TEST_P(FuseTest, FeaturesOfInnerLayersAreTheSame) {
  auto arguments = inputs();
  arguments.push_back(at::tensor({1, 4, 6}, at::kLong));
  expect_same("forward_features", arguments);
}

TEST_P(FuseTest, APartOfTheLayersGivesTheSame) {
  for (const auto& [first, end] : {std::pair{0, 3}, std::pair{3, 8}, std::pair{2, 2}}) {
    auto arguments = inputs();
    arguments.push_back(at::tensor({first, end}, at::kLong));
    expect_same("forward_layers", arguments);
  }
}

TEST_P(FuseTest, ALayerIsFiveOperators) {
  const torch::jit::Module target = demo("target", GetParam());
  auto kinds = kinds_of(*fused_graph(target, "forward"));
  EXPECT_EQ(kinds["add_rms_norm"], 0);
  EXPECT_EQ(kinds["silu_mul"], 0);
  EXPECT_EQ(kinds["linear"], 0);
  EXPECT_EQ(kinds["rms_norm"], 1);  // the last one, whose result the method returns
  EXPECT_EQ(kinds["attend"], kLayers);
  EXPECT_EQ(kinds["add_linear"], 2 * kLayers);
  EXPECT_EQ(kinds["norm_linear"], 2 * kLayers);
}

TEST_P(FuseTest, SoIsOneOfAModuleWithoutConstants) {
  SyntheticShape shape;
  const SyntheticModules modules = make_modules(shape, {c10::kCPU, GetParam()});
  for (const torch::jit::Module& module : {modules.target, *modules.drafter}) {
    auto kinds = kinds_of(*fused_graph(module, "forward"));
    EXPECT_EQ(kinds["If"], 0);
    EXPECT_EQ(kinds["silu_mul"], 0);
    EXPECT_GE(kinds["add_linear"], 1);
    EXPECT_GE(kinds["norm_linear"], 1);
  }
}

TEST_P(FuseTest, ADraftersLayerIsFused) {
  const torch::jit::Module drafter = demo("drafter-eagle", GetParam());
  auto kinds = kinds_of(*fused_graph(drafter, "forward"));
  EXPECT_EQ(kinds["add_linear"], 1);
  EXPECT_EQ(kinds["norm_linear"], 2);
  EXPECT_EQ(kinds["silu_mul"], 0);
}

INSTANTIATE_TEST_SUITE_P(Types, FuseTest, ::testing::Values(at::kFloat, at::kBFloat16),
                         [](const auto& type) { return std::string(c10::toString(type.param)); });

}  // namespace
}  // namespace lamplighter

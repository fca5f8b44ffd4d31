#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/csrc/jit/serialization/import.h>

#include <string>

#include "bundle/modules/module.h"
#include "tests/kernels/common/operators.h"

// How the demo's modules pack their weights when the engine asks for a precision.
namespace lamplighter::test {
namespace {

const std::string kDirectory = LAMPLIGHTER_SOURCE_DIR "/models/demo/bundle";

// The weight `name` of a module, as `prepare` leaves it.
at::Tensor prepared(const std::string& file, const std::string& name, int bits) {
  Placement placement;
  placement.dtype = at::kBFloat16;
  placement.weight_bits = bits;
  const Module module(kDirectory, {file, "bfloat16"}, file, {"prepare"}, placement);
  return module.buffer(name);
}

at::Tensor stored(const std::string& file, const std::string& name) {
  return torch::jit::load(kDirectory + "/" + file).attr(name).toTensor().to(at::kBFloat16).contiguous();
}

TEST(Rounding, WeightsOfTheTargetAreRoundedAsAskedFor) {
  const at::Tensor weight = stored("target.pt", "fc1");
  for (const int bits : {16, 8, 4}) {
    EXPECT_TRUE(same_bits(prepared("target.pt", "fc1", bits), pack_linear_bits(weight, bits))) << bits;
  }
}

TEST(Rounding, WeightsOfDraftersAreInt8) {
  const at::Tensor expected = pack_linear_bits(stored("drafter-eagle.pt", "fc"), 8);
  for (const int bits : {16, 8, 4}) {
    EXPECT_TRUE(same_bits(prepared("drafter-eagle.pt", "fc", bits), expected)) << bits;
  }
}

// The mode is the whole process's: a program that uses Torch itself keeps its own.
TEST(Loading, LeavesTheModeOfTorchScriptAlone) {
  for (const bool mode : {false, true}) {
    torch::jit::getProfilingMode() = mode;
    prepared("target.pt", "fc1", 16);
    EXPECT_EQ(torch::jit::getProfilingMode(), mode);
  }
}

}  // namespace
}  // namespace lamplighter::test

#include <ATen/Parallel.h>
#include <benchmark/benchmark.h>

#include "tests/kernels/verify_problem.h"

// Time of `verify_tree` on one thread, one image. Chains whose draft is the target (all is accepted) and
// trees of random rows, by vocabulary.
namespace lamplighter::test {
namespace {

void verify(benchmark::State& state, const char* rule, bool agreeing) {
  at::set_num_threads(1);
  std::mt19937 rng(7);
  VerifyShape shape;
  shape.nodes = state.range(0) + 1;
  shape.vocabulary = state.range(1);
  shape.chain = agreeing;
  shape.codes = shape.vocabulary;
  VerifyProblem problem(rng, shape);
  if (agreeing) problem.tree.target.values.narrow(1, 0, shape.nodes - 1).copy_(problem.tree.draft.values);
  ops::VerifyOptions options;
  options.rule = rule;
  int64_t accepted = 0;
  for (auto _ : state) accepted = ops::verify_tree(problem.tree, options).count.item<int64_t>();
  state.counters["accepted"] = static_cast<double>(accepted);
}

}  // namespace
}  // namespace lamplighter::test

int main(int argc, char** argv) {
  using namespace lamplighter::test;
  for (const char* rule : {"exact", "traversal", "block"}) {
    benchmark::RegisterBenchmark((std::string("chain/") + rule).c_str(), verify, rule, true)
        ->ArgNames({"drafted", "vocabulary"})
        ->ArgsProduct({{4, 8}, {1024, 16384, 65536}})
        ->Unit(benchmark::kMicrosecond);
  }
  for (const char* rule : {"exact", "traversal"}) {
    benchmark::RegisterBenchmark((std::string("tree/") + rule).c_str(), verify, rule, false)
        ->ArgNames({"drafted", "vocabulary"})
        ->ArgsProduct({{8, 58}, {1024, 16384}})
        ->Unit(benchmark::kMicrosecond);
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}

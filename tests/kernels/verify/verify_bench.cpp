#include <ATen/Parallel.h>
#include <ATen/ops/log.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <benchmark/benchmark.h>

#include "tests/kernels/verify/verify_problem.h"

// Time of `verify_tree` on one thread, one image. Chains whose draft is the target (all is accepted) and
// trees of random rows, by vocabulary; rows as probabilities or as logits with statistics.
namespace lamplighter::test {
namespace {

ops::Distributions as_logits(const at::Tensor& probabilities) {
  const at::Tensor one = at::ones({1});
  return ops::guide_and_filter(probabilities.log(), {one, one, at::zeros({1}, at::kLong), one, "ar"});
}

void verify(benchmark::State& state, const char* rule, bool agreeing, bool logits) {
  at::set_num_threads(1);
  std::mt19937 rng(7);
  VerifyShape shape;
  shape.nodes = state.range(0) + 1;
  shape.vocabulary = state.range(1);
  shape.chain = agreeing;
  shape.codes = shape.vocabulary;
  VerifyProblem problem(rng, shape);
  if (agreeing) problem.tree.target.values.narrow(1, 0, shape.nodes - 1).copy_(problem.tree.draft.values);
  if (logits) {
    problem.tree.target = as_logits(problem.tree.target.values);
    problem.tree.draft = as_logits(problem.tree.draft.values);
  }
  ops::VerifyOptions options;
  options.rule = rule_from(rule);
  int64_t accepted = 0;
  for (auto _ : state) accepted = ops::verify_tree(problem.tree, options).count.item<int64_t>();
  state.counters["accepted"] = static_cast<double>(accepted);
}

}  // namespace
}  // namespace lamplighter::test

int main(int argc, char** argv) {
  using namespace lamplighter::test;
  for (const bool logits : {false, true}) {
    const std::string rows = logits ? "/logits" : "";
    for (const char* rule : {"exact", "traversal", "block"}) {
      benchmark::RegisterBenchmark(("chain/" + (rule + rows)).c_str(), verify, rule, true, logits)
          ->ArgNames({"drafted", "vocabulary"})
          ->ArgsProduct({{4, 8}, {1024, 16384, 65536}})
          ->Unit(benchmark::kMicrosecond);
    }
    for (const char* rule : {"exact", "traversal"}) {
      benchmark::RegisterBenchmark(("tree/" + (rule + rows)).c_str(), verify, rule, false, logits)
          ->ArgNames({"drafted", "vocabulary"})
          ->ArgsProduct({{8, 58}, {1024, 16384}})
          ->Unit(benchmark::kMicrosecond);
    }
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>
#include <benchmark/benchmark.h>

#include "kernels/common/isa.h"
#include "kernels/ops.h"
#include "tests/kernels/common/operators.h"

// Time of the operators between two passes of a model on one thread, one image, by vocabulary and rows
// (nodes of a tree). verify_tree has its own benchmark.
namespace lamplighter::test {
namespace {

at::Tensor one(double value, at::ScalarType dtype = at::kFloat) {
  return at::full({1}, value, dtype);
}

// Tokens that a usual top-k leaves.
int64_t kept(int64_t vocabulary) {
  return vocabulary <= 1024 ? 200 : 2000;
}

at::Tensor random_logits(int64_t sequences, int64_t rows, int64_t vocabulary, at::ScalarType dtype) {
  std::mt19937 rng(7);
  return random_tensor(rng, {sequences, rows, vocabulary}, dtype, 2);
}

ops::Distributions distributions(int64_t rows, int64_t vocabulary, int64_t top_k) {
  return ops::guide_and_filter(random_logits(1, rows, vocabulary, at::kFloat),
                               {one(1), one(1), one(static_cast<double>(top_k), at::kLong), one(1), "ar"});
}

void filter(benchmark::State& state, at::ScalarType dtype, bool with_top_k, double top_p) {
  at::set_num_threads(1);
  const int64_t vocabulary = state.range(0);
  const at::Tensor logits = random_logits(2, state.range(1), vocabulary, dtype);
  const at::Tensor guidance = one(4), temperature = one(1), p = one(top_p);
  const at::Tensor k = one(with_top_k ? static_cast<double>(kept(vocabulary)) : 0, at::kLong);
  for (auto _ : state) {
    benchmark::DoNotOptimize(ops::guide_and_filter(logits, {guidance, temperature, k, p, "ar"}));
  }
}

void sample(benchmark::State& state) {
  at::set_num_threads(1);
  const ops::Distributions p = distributions(state.range(1), state.range(0), kept(state.range(0)));
  const at::Tensor uniforms = at::rand({1, state.range(1)}), temperature = one(1);
  for (auto _ : state) benchmark::DoNotOptimize(ops::sample(p, uniforms, temperature));
}

void children(benchmark::State& state, bool with_top_k, int64_t count) {
  at::set_num_threads(1);
  const int64_t rows = state.range(1);
  const ops::Distributions p = distributions(rows, state.range(0), with_top_k ? kept(state.range(0)) : 0);
  const at::Tensor nodes = integers({rows}, [](int64_t i) { return i; });
  const at::Tensor seed = one(3, at::kLong);
  int64_t step = 0;
  for (auto _ : state) {
    const at::Tensor steps = one(static_cast<double>(++step), at::kLong);
    benchmark::DoNotOptimize(ops::sample_children(p, {seed, steps, nodes, count, true}));
  }
}

void expand(benchmark::State& state, bool with_top_k) {
  at::set_num_threads(1);
  const int64_t rows = state.range(1);
  const ops::Distributions p = distributions(rows, state.range(0), with_top_k ? kept(state.range(0)) : 0);
  const at::Tensor scores = at::full({1, rows}, -1.0F);
  for (auto _ : state) benchmark::DoNotOptimize(ops::expand_dynamic(p, scores, 10));
}

void rerank(benchmark::State& state) {
  at::set_num_threads(1);
  std::mt19937 rng(7);
  const int64_t passes = state.range(0), pool = 10 + passes * 100;
  const at::Tensor tokens = integers({1, pool}, [](int64_t i) { return i; });
  const at::Tensor scores = -(random_tensor(rng, {1, pool}, at::kFloat).abs() + tokens);
  const at::Tensor frontiers = integers({1, passes, 10}, [](int64_t i) { return i % 10; });
  for (auto _ : state) benchmark::DoNotOptimize(ops::rerank_dynamic(tokens, scores, frontiers, 58));
}

template <class Function, class... Args>
void over_rows(const std::string& name, std::vector<int64_t> rows, Function function, Args... args) {
  benchmark::RegisterBenchmark(name.c_str(), function, args...)
      ->ArgNames({"vocabulary", "rows"})
      ->ArgsProduct({{1024, 16384, 65536}, std::move(rows)})
      ->Unit(benchmark::kMicrosecond);
}

}  // namespace
}  // namespace lamplighter::test

int main(int argc, char** argv) {
  using namespace lamplighter::test;
  const std::vector<int64_t> nodes = {1, 5, 26, 58}, level = {1, 4, 10};
  over_rows("guide_and_filter/fp32/top-k", nodes, filter, at::kFloat, true, 1.0);
  over_rows("guide_and_filter/bf16/top-k", nodes, filter, at::kBFloat16, true, 1.0);
  over_rows("guide_and_filter/fp32/top-p", {1}, filter, at::kFloat, false, 0.9);
  over_rows("guide_and_filter/fp32/all", {1}, filter, at::kFloat, false, 1.0);
  over_rows("sample/top-k", nodes, sample);
  over_rows("sample_children/top-k/1", level, children, true, 1);
  over_rows("sample_children/top-k/4", level, children, true, 4);
  over_rows("sample_children/all/4", {1}, children, false, 4);
  over_rows("expand_dynamic/top-k", level, expand, true);
  over_rows("expand_dynamic/all", {1}, expand, false);
  benchmark::RegisterBenchmark("rerank_dynamic", rerank)
      ->ArgName("passes")
      ->Arg(4)
      ->Arg(7)
      ->Unit(benchmark::kMicrosecond);
  benchmark::AddCustomContext("instructions", lamplighter::isa_name(lamplighter::active_isa()));
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}

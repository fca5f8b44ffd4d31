#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <benchmark/benchmark.h>

#include <string>

#include "kernels/common/isa.h"
#include "tests/kernels/attend/attend_problem.h"

// Time of `attend` over rows and prefix lengths, one thread, two sequences (an image with guidance), causal
// rows. Layers of one cache are taken in turn, as a decoder does. Counter per_row: time per row of a
// sequence.
namespace lamplighter::test {
namespace {

struct Model {
  const char* name;
  int64_t heads, head_dim, layers;
};

constexpr Model kModels[] = {{"demo", 3, 64, 10}, {"LlamaGen-L", 16, 64, 24}};

void attend_rows(benchmark::State& state, const Model& model, at::ScalarType dtype) {
  at::set_num_threads(1);
  std::mt19937 rng(7);
  const int64_t rows = state.range(0), prefix = state.range(1), sequences = 2;
  AttendCall call;
  call.heads = call.kv_heads = model.heads;
  call.scale = 0.125;
  call.qkv = random_tensor(rng, {sequences, rows, 3 * model.heads * model.head_dim}, dtype);
  call.cache =
      random_tensor(rng, {model.layers, 2, sequences, model.heads, prefix + rows, model.head_dim}, dtype);
  call.lengths = integers({sequences}, [&](int64_t) { return prefix; });
  call.positions = integers({sequences, rows}, [&](int64_t i) { return i % rows; });
  call.rotary = rotary_table(rows, model.head_dim);
  call.tree_mask = at::empty({0}, at::kLong);
  for (auto _ : state) {
    benchmark::DoNotOptimize(call.run());
    call.layer = (call.layer + 1) % model.layers;
  }
  state.counters["per_row"] = benchmark::Counter(
      static_cast<double>(rows), benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

}  // namespace
}  // namespace lamplighter::test

int main(int argc, char** argv) {
  using namespace lamplighter::test;
  for (const Model& model : kModels) {
    for (const at::ScalarType dtype : {at::kBFloat16, at::kFloat}) {
      const std::string name = std::string(model.name) + (dtype == at::kFloat ? "/fp32" : "/bf16");
      benchmark::RegisterBenchmark(name.c_str(), attend_rows, model, dtype)
          ->ArgNames({"rows", "prefix"})
          ->ArgsProduct({{1, 2, 4, 8, 9, 16, 32, 64}, {0, 150, 376, 1024}})
          ->Unit(benchmark::kMicrosecond);
    }
  }
  benchmark::AddCustomContext("instructions", lamplighter::isa_name(lamplighter::active_isa()));
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}

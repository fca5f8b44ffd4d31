#include <ATen/Context.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/zeros.h>
#include <benchmark/benchmark.h>

#include <tuple>

#include "decode/replay.h"
#include "decode/report_reader.h"
#include "tests/kernels/attend/attend_problem.h"
#include "tests/kernels/common/operators.h"
#include "tests/kernels/verify/verify_problem.h"

// Time of kernels of a cycle on the first CUDA device (without one, on the CPU): one image with guidance in
// bf16. On a device calls are replayed in a row, so that no launch by the host is in the numbers.
namespace lamplighter::test {
namespace {

c10::Device device() {
  return at::hasCUDA() ? c10::Device(c10::kCUDA, 0) : c10::Device(c10::kCPU);
}

// work(i) for the i-th of some calls in a row.
template <class Work>
void measure(benchmark::State& state, Work work) {
  const int calls = device().is_cuda() ? 20 : 1;
  Replay replay(device(), true);
  const auto all = [&] {
    for (int i = 0; i < calls; ++i) work(i);
  };
  for (int i = 0; i < 5; ++i) replay.run(all);
  for (auto _ : state) {
    StageClock clock(device(), false);
    replay.run(all);
    clock.lap(&StageTimes::cycle);
    state.SetIterationTime(clock.read().cycle / 1000 / calls);
  }
}

at::Tensor one(double value, at::ScalarType dtype = at::kFloat) {
  return at::full({1}, value, at::dtype(dtype).device(device()));
}

at::Tensor random_logits(std::int64_t rows, std::int64_t vocabulary) {
  std::mt19937 rng(7);
  return random_tensor(rng, {2, rows, vocabulary}, at::kBFloat16, 2).to(device());
}

ops::Distributions filtered(const at::Tensor& logits, std::int64_t top_k) {
  return ops::guide_and_filter(logits,
                               {one(4), one(1), one(static_cast<double>(top_k), at::kLong), one(1), "ar"});
}

// Logits whose distributions are the given ones.
ops::Distributions as_logits(const at::Tensor& probabilities) {
  const at::Tensor logits = probabilities.log().clamp_min(-20).to(at::kBFloat16);
  return filtered(at::cat({logits, logits}), 0);
}

void filter(benchmark::State& state) {
  const at::Tensor logits = random_logits(state.range(1), state.range(0));
  const at::Tensor guidance = one(4), temperature = one(1), k = one(2000, at::kLong), p = one(1);
  measure(state, [&](int) { ops::guide_and_filter(logits, {guidance, temperature, k, p, "ar"}); });
}

void children(benchmark::State& state) {
  const std::int64_t rows = state.range(1);
  const at::Tensor logits = random_logits(rows, state.range(0));
  const at::Tensor guidance = one(4), temperature = one(1), k = one(2000, at::kLong), p = one(1);
  const at::Tensor nodes = integers({rows}, [](std::int64_t i) { return i; }).to(device());
  const at::Tensor seed = one(3, at::kLong), step = one(5, at::kLong);
  measure(state, [&](int) {
    ops::draft_children(logits, {guidance, temperature, k, p, "ar"}, {seed, step, nodes, 4, true});
  });
}

void expand(benchmark::State& state) {
  const std::int64_t rows = state.range(1);
  const ops::Distributions p = filtered(random_logits(rows, state.range(0)), 2000);
  const at::Tensor scores = at::full({1, rows}, -1.0F, at::dtype(at::kFloat).device(device()));
  measure(state, [&](int) { ops::expand_dynamic(p, scores, 10); });
}

// Each code's neighbours, no code twice.
at::Tensor neighbour_table(std::int64_t codes, std::int64_t count) {
  return integers({codes, count}, [=](std::int64_t i) { return (i / count + i % count * 7) % codes; })
      .to(at::kInt)
      .to(device());
}

void verify(benchmark::State& state, const char* rule, bool chain) {
  std::mt19937 rng(7);
  VerifyShape shape;
  shape.vocabulary = shape.codes = state.range(0);
  shape.nodes = state.range(1) + 1;
  shape.chain = chain;
  ops::ScoredTree tree = on_device(VerifyProblem(rng, shape).tree, device());
  tree.target = as_logits(tree.target.values);
  tree.draft = as_logits(tree.draft.values);
  ops::VerifyOptions options;
  options.rule = rule_from(rule);
  if (options.rule == Rule::lantern_plus) {
    options.neighbours = neighbour_table(shape.codes, 1000);
    options.k = 1000;
    options.numbers = numbers_of(options.rule, {5});
  }
  measure(state, [&](int) { ops::verify_tree(tree, options); });
}

// Layers in turn, so that their keys and values come from memory.
void attend(benchmark::State& state, std::int64_t heads, std::int64_t head_dim) {
  constexpr std::int64_t kManyLayers = 20;
  const std::int64_t rows = state.range(0), prefix = state.range(1), sequences = 2;
  const auto numbers = at::dtype(at::kBFloat16).device(device());
  AttendCall call;
  call.heads = call.kv_heads = heads;
  call.scale = 0.1;
  call.qkv = at::full({sequences, rows, 3 * heads * head_dim}, 0.5, numbers);
  call.cache = at::zeros({kManyLayers, 2, sequences, heads, prefix + rows, head_dim}, numbers);
  call.lengths = at::full({sequences}, prefix, at::dtype(at::kLong).device(device()));
  call.positions = integers({sequences, rows}, [&](std::int64_t i) { return i % rows; }).to(device());
  call.rotary = rotary_table(rows, head_dim).to(device());
  call.tree_mask = at::empty({0}, call.lengths.options());
  measure(state, [&](int i) {
    call.layer = i % kManyLayers;
    call.run();
  });
  const auto bytes = static_cast<double>(2 * 2 * sequences * heads * (prefix + rows) * head_dim);
  state.counters["bytes"] = benchmark::Counter(bytes, benchmark::Counter::kIsIterationInvariantRate);
}

// The products of a block with what is part of them; blocks in turn, so that their weights come from memory.
void products(benchmark::State& state, std::int64_t hidden, std::int64_t ffn) {
  constexpr int kBlocks = 4;
  const auto numbers = at::dtype(at::kBFloat16).device(device());
  const auto weights = [&](std::int64_t out, std::int64_t in) {
    std::vector<at::Tensor> all;
    for (int i = 0; i < kBlocks; ++i) all.push_back(at::full({out, in}, 0.01, numbers));
    return all;
  };
  const auto wqkv = weights(3 * hidden, hidden), wo = weights(hidden, hidden), w13 = weights(2 * ffn, hidden),
             w2 = weights(hidden, ffn);
  const at::Tensor norm = at::full({hidden}, 1, numbers);
  at::Tensor residual = at::full({state.range(0), hidden}, 0.5, numbers);
  const at::Tensor attended = at::full_like(residual, 0.5);
  measure(state, [&](int i) {
    const auto block = static_cast<std::size_t>(i % kBlocks);
    norm_linear(residual, norm, 1e-5, wqkv[block], 3 * hidden, false);
    add_linear(residual, attended, wo[block]);
    add_linear(residual, norm_linear(residual, norm, 1e-5, w13[block], 2 * ffn, true), w2[block]);
  });
  const auto bytes = static_cast<double>(2 * (4 * hidden * hidden + 3 * hidden * ffn));
  state.counters["bytes"] = benchmark::Counter(bytes, benchmark::Counter::kIsIterationInvariantRate);
}

template <class Function, class... Args>
benchmark::internal::Benchmark* add(const std::string& name, Function function, Args... args) {
  return benchmark::RegisterBenchmark(name.c_str(), function, args...)
      ->UseManualTime()
      ->Iterations(50)
      ->Unit(benchmark::kMicrosecond);
}

template <class Function, class... Args>
void add_rows(const std::string& name, std::vector<std::int64_t> rows, Function function, Args... args) {
  add(name, function, args...)
      ->ArgNames({"vocabulary", "rows"})
      ->ArgsProduct({{16384, 65536}, std::move(rows)});
}

}  // namespace
}  // namespace lamplighter::test

int main(int argc, char** argv) {
  using namespace lamplighter::test;
  add_rows("guide_and_filter", {1, 4, 59}, filter);
  add_rows("draft_children/4", {1, 10}, children);
  add_rows("expand_dynamic", {10}, expand);
  for (const char* rule : {"exact", "lantern++", "block"})
    add_rows(std::string("verify_tree/chain/") + rule, {3}, verify, rule, true);
  for (const char* rule : {"exact", "lantern++", "traversal"})
    add_rows(std::string("verify_tree/tree/") + rule, {58}, verify, rule, false);
  for (const auto& [name, heads, head_dim] :
       {std::tuple{"LlamaGen-XL", 20, 64}, std::tuple{"Chameleon-7B", 32, 128}}) {
    add(std::string("attend/") + name, attend, heads, head_dim)
        ->ArgNames({"rows", "prefix"})
        ->ArgsProduct({{1, 4, 8, 59}, {376, 1144, 2400}});
  }
  for (const auto& [name, hidden, ffn] :
       {std::tuple{"LlamaGen-XL", 1280, 3456}, std::tuple{"Chameleon-7B", 4096, 11008}}) {
    add(std::string("products/") + name, products, hidden, ffn)
        ->ArgName("rows")
        ->ArgsProduct({{2, 8, 16, 32, 116}});
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}

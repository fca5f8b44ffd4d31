#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <ATen/record_function.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>

#include "tests/decode/toy.h"
#include "tests/decode/toy_methods.h"

// How many operators a cycle calls. On a device each is a kernel, two in `attend`; a graph of them costs a
// microsecond or two for every one, so none may slip in.
namespace lamplighter::test {
namespace {

// Counts the operators of this thread that compute something: not those that only look at a tensor in another
// way or allocate one, and of those that call others, the others.
class Counter {
 public:
  Counter() {
    total_ = 0;
    inner_.assign(1, 0);
    handle_ = at::addThreadLocalCallback(
        at::RecordFunctionCallback(&begin, &end).scopes({at::RecordScope::FUNCTION}));
  }
  ~Counter() { at::removeCallback(handle_); }
  Counter(const Counter&) = delete;
  Counter& operator=(const Counter&) = delete;

  static std::int64_t total() { return total_; }

 private:
  static std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction&) {
    inner_.push_back(0);
    return nullptr;
  }

  static void end(const at::RecordFunction& function, at::ObserverContext*) {
    const bool calls_others = inner_.back() > 0;
    inner_.pop_back();
    const bool computes = calls_others || !only_looks(function.name());
    if (!calls_others && computes) ++total_;
    if (computes) ++inner_.back();
  }

  static bool only_looks(const std::string& name) {
    static constexpr std::array<const char*, 24> kNames{
        "alias",         "as_strided", "contiguous", "detach",    "empty",     "empty_like",
        "empty_strided", "expand",     "expand_as",  "flatten",   "narrow",    "lift_fresh",
        "new_empty",     "permute",    "reshape",    "resize_",   "select",    "slice",
        "squeeze",       "to",         "_to_copy",   "unflatten", "unsqueeze", "view"};
    return name.rfind("aten::", 0) == 0 &&
           std::find(kNames.begin(), kNames.end(), name.substr(6)) != kNames.end();
  }

  static thread_local std::int64_t total_;
  static thread_local std::vector<std::int64_t> inner_;  // of the operators that run, how many they called
  at::CallbackHandle handle_ = 0;
};
thread_local std::int64_t Counter::total_ = 0;
thread_local std::vector<std::int64_t> Counter::inner_;

// Operators of one cycle, guided, in the shapes that a graph captures.
std::int64_t operators(const SyntheticShape& shape, const Method& method, bool whole_cycles = false) {
  at::set_num_threads(1);
  const c10::InferenceMode inference;
  const Toy toy(shape);
  SamplingOptions sampling;
  sampling.cfg_scale = 2.5F;
  sampling.top_k = 9;
  const Models models = toy.models();
  const Prompts prompts = toy.prompts({0}, true);
  RunShape run;
  const Grid grid = toy.grid();
  run.grid = &grid;
  run.prompt_length = prompts.longest();
  run.guided = true;
  run.whole_cycles = whole_cycles;
  DecodeState state = make_state(models, method, run, run.prompt_length + grid.length(), {{sampling, 1}});
  state.run.fixed_shapes = true;
  const Scores root = prefill(models, prompts, state);
  const Draft alone = last_token(state);
  commit(state, alone, root, verify(models, method, state, alone, root));
  const Counter counter;
  run_cycle(models, method, state);
  return Counter::total();
}

SyntheticShape shape(std::int64_t layers, bool chameleon = false) {
  SyntheticShape shape;
  shape.chameleon = chameleon;
  shape.vocabulary = 12;
  shape.rows = shape.columns = 8;
  shape.layers = layers;
  return shape;
}

// Of the target alone.
std::int64_t of_pass(const SyntheticShape& shape) {
  const c10::InferenceMode inference;
  const Toy toy(shape);
  const at::Tensor integers = at::zeros({2, 3}, at::kLong);
  at::Tensor cache = toy.target.make_cache(2, 8);
  const at::Tensor rows = toy.target.embed(integers);
  const Counter counter;
  toy.target.forward(rows, integers, at::empty({0}, at::kLong), integers.select(1, 0).contiguous(), cache);
  return Counter::total();
}

std::int64_t of_cycle(const std::string& tree) {
  return operators(shape(1), static_method(preset_tree(tree)));
}

TEST(Launches, OfALayer) {  // linear 4, attend, add_rms_norm 2, silu_mul; norm_heads
  EXPECT_EQ(of_pass(shape(3)) - of_pass(shape(2)), 8);
  EXPECT_EQ(of_pass(shape(3, true)) - of_pass(shape(2, true)), 9);
}

TEST(Launches, OfAnAutoregressiveStepBesideItsLayers) {
  EXPECT_LE(operators(shape(1), {}) - 8, 5) << "embedding, copy, norm, head, ar_step";
}

TEST(Launches, OfTrees) {
  EXPECT_LE(of_cycle("chain-3") - of_cycle("chain-2"), 16)
      << "a pass of the drafter, and what is sampled from it";
  EXPECT_LE(of_cycle("chain-1") - operators(shape(1), {}), 25) << "the drafter's pass over new rows";
  EXPECT_LE(of_cycle("lantern-58") - of_cycle("chain-5"), 12)
      << "selections among siblings, and the cache, which a chain leaves as it is";
  EXPECT_LE(operators(shape(1), dynamic_method(4, 6, 20)) - of_cycle("chain-5"), 41);
}

TEST(Launches, OfAWindowThatOneOperatorRenews) {
  for (const char* tree : {"chain-7", "chain-15"})
    EXPECT_LE(operators(shape(1), window_method(tree), true) - 8, 8) << "embedding, norm, head, window_step";
}

TEST(Launches, OfWindows) {
  EXPECT_LE(operators(shape(1), window_method("chain-7")) - operators(shape(1), {}), 18)
      << "whatever the window's length";
  EXPECT_LE(operators(shape(1), window_method("fan-3-2-7")) - operators(shape(1), window_method("chain-7")),
            25);
}

TEST(Launches, OfRowParallelDecoding) {
  EXPECT_LE(operators(shape(1), zipar_method(4)) - operators(shape(1), {}), 44) << "whatever their number";
}

}  // namespace
}  // namespace lamplighter::test

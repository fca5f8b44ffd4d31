#include <ATen/Parallel.h>
#include <ATen/ops/equal.h>
#include <ATen/record_function.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <set>

#include "decode/draft_record.h"
#include "tests/decode/toy.h"
#include "tests/decode/toy_methods.h"

// What capture as a graph needs of a cycle: fixed addresses, fixed shapes, and no word from the device to the
// host.
namespace lamplighter::test {
namespace {

struct CycleCase {
  std::string name;
  Method method;
  bool guided = true, partly = false, row_ends = false;
};

void PrintTo(const CycleCase& test, std::ostream* out) {
  *out << test.name;
}

// Names and overloads of the operators that are called while an object lives, and shapes of their results.
class Operators {
 public:
  Operators() {
    called_.clear();
    handle_ =
        at::addThreadLocalCallback(at::RecordFunctionCallback([](const at::RecordFunction& function)
                                                                  -> std::unique_ptr<at::ObserverContext> {
                                     const auto name = function.operator_name();
                                     if (name) called_.push_back(name->name + "." + name->overload_name);
                                     return nullptr;
                                   }).scopes({at::RecordScope::FUNCTION}));
  }
  ~Operators() { at::removeCallback(handle_); }
  Operators(const Operators&) = delete;
  Operators& operator=(const Operators&) = delete;

  const std::vector<std::string>& called() const { return called_; }
  // Those that would make the host wait, or copy a number to the device from memory that is not pinned.
  std::set<std::string> waiting() const {
    std::set<std::string> found;
    for (const std::string& name : called_) {
      for (const char* bad :
           {"aten::_local_scalar_dense.", "aten::item.", "aten::is_nonzero.", "aten::nonzero", "aten::equal.",
            "aten::unique", "aten::_unique", "aten::masked_select.", "aten::scalar_tensor.",
            "aten::where.Scalar", "aten::repeat_interleave.Tensor"}) {
        if (name.rfind(bad, 0) == 0) found.insert(name);
      }
    }
    return found;
  }

 private:
  static thread_local std::vector<std::string> called_;
  at::CallbackHandle handle_ = 0;
};
thread_local std::vector<std::string> Operators::called_;

std::vector<const void*> addresses(DecodeState& state) {
  std::vector<const void*> found;
  for (const PerImage& part : per_image(state)) found.push_back(part.tensor->const_data_ptr());
  if (state.row_end_bits.defined()) found.push_back(state.row_end_bits.const_data_ptr());
  return found;
}

class CycleTest : public ::testing::TestWithParam<CycleCase> {
 protected:
  void SetUp() override { at::set_num_threads(1); }

  static SyntheticShape shape() {
    SyntheticShape shape;
    shape.vocabulary = 12;
    shape.rows = shape.columns = 4;
    shape.row_ends = GetParam().row_ends;
    shape.weight_scale = 1.5;
    return shape;
  }
  std::vector<DecodeRequest> requests() const {
    SamplingOptions sampling;
    sampling.cfg_scale = GetParam().guided ? 2.5F : 1.0F;
    sampling.cfg_interval = GetParam().partly ? 3 : -1;
    sampling.top_k = 9;
    return {{sampling, 1}, {sampling, 2}, {sampling, 3}};
  }

  // Operators of every cycle, the record of its draft included, and the codes.
  at::Tensor run(bool fixed_shapes, const std::function<void(DecodeState&, const Operators&)>& inspect) {
    const c10::InferenceMode inference;
    const Method& method = GetParam().method;
    const Prompts prompts = toy_.prompts(numbers_, GetParam().guided);
    DecodeState state = make_state(toy_.models(), method, prompts, requests(), toy_.grid());
    state.run.fixed_shapes = fixed_shapes;
    const Scores root = prefill(toy_.models(), prompts, state);
    const Draft alone = last_token(state);
    commit(state, alone, root, verify(toy_.models(), method, state, alone, root));
    while (state.run.counters.steps.min().item<std::int64_t>() < state.run.counters.total) {
      const Operators operators;
      run_cycle(toy_.models(), method, state, {},
                [&](const Draft& draft, const Scores&, const Verified& verified) {
                  record_draft(draft, verified, method.verify.sampled);
                });
      inspect(state, operators);
    }
    return state.run.counters.codes.narrow(1, 0, state.run.counters.total).contiguous();
  }

  const std::vector<std::int64_t> numbers_{0, 1, 2};
  const Toy toy_{shape()};
};

TEST_P(CycleTest, OfFixedShapesCanBeCaptured) {
  std::vector<const void*> places;
  std::vector<std::string> calls;
  const at::Tensor codes = run(true, [&](DecodeState& state, const Operators& operators) {
    EXPECT_TRUE(operators.waiting().empty()) << *operators.waiting().begin();
    if (places.empty()) places = addresses(state);
    if (calls.empty()) calls = operators.called();
    EXPECT_EQ(addresses(state), places);
    EXPECT_EQ(operators.called(), calls) << "not the same work in every cycle";
  });
  EXPECT_GT(calls.size(), 20U);
  const Prompts prompts = toy_.prompts(numbers_, GetParam().guided);
  EXPECT_TRUE(at::equal(codes, decode(toy_.models(), GetParam().method, prompts, requests(), toy_.grid())));
}

// On the CPU, where asking is free, rows that hold nothing are left out; so the operators above are seen.
TEST_P(CycleTest, OfOtherShapesAsksHowManyRowsThereAre) {
  bool asked = false;
  run(false, [&](DecodeState&, const Operators& operators) {
    asked = asked || operators.waiting().count("aten::_local_scalar_dense.") != 0;
  });
  EXPECT_EQ(asked, drafts(GetParam().method) || GetParam().row_ends);
}

std::vector<CycleCase> cycle_cases() {
  Method conditional = static_method(bushy_tree());
  conditional.conditional = true;
  std::vector<CycleCase> cases;
  const std::vector<std::pair<std::string, Method>> methods{
      {"ar", {}},
      {"chain", static_method(preset_tree("chain-3"))},
      {"lantern_26", static_method(preset_tree("lantern-26"))},
      {"traversal", static_method(bushy_tree(), "traversal")},
      {"conditional", conditional},
      {"dynamic", dynamic_method(2, 3, 7)}};
  for (const auto& [name, method] : methods) {
    cases.push_back({name, method});
    cases.push_back({name + "_unguided", method, false});
    cases.push_back({name + "_partly_guided", method, true, true});
    cases.push_back({name + "_row_ends", method, true, false, true});
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Methods, CycleTest, ::testing::ValuesIn(cycle_cases()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace lamplighter::test

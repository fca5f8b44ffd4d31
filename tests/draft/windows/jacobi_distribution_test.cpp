#include <ATen/Parallel.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/where.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "draft/windows/jacobi.h"
#include "tests/decode/toy_methods.h"
#include "tests/draft/method_distribution.h"
#include "tests/draft/wrapped.h"

namespace lamplighter::test {
namespace {

// Block verification of a window asks that its drafts do not depend on each other: all are sampled anew.
Method block_window() {
  Method method = window_method("chain-3", WindowFill::uniform, false);
  method.verify.rule = Rule::block;
  return method;
}

class JacobiDistribution : public ::testing::TestWithParam<MethodCase> {
 protected:
  void SetUp() override { at::set_num_threads(1); }
};

TEST_P(JacobiDistribution, IsThatOfTheTarget) {
  const Toy toy(run_shape(GetParam().row_ends));
  expect_distribution(toy, toy.models(), GetParam());
}

TEST_P(JacobiDistribution, HoldsWhereSlotsAreRefilled) {
  const Toy toy(run_shape(GetParam().row_ends));
  expect_distribution_of_slots(toy, toy.models(), GetParam());
}

std::vector<MethodCase> distribution_cases() {
  return {{"uniform", window_method("chain-3")},
          {"fresh", window_method("chain-3", WindowFill::uniform, false)},
          {"block", block_window()},
          {"random", window_method("chain-2", WindowFill::random)},
          {"repeat", window_method("chain-3", WindowFill::repeat)},
          {"sample", window_method("chain-3", WindowFill::sample)},
          {"above", window_method("chain-3", WindowFill::above)},
          {"adapting", adapting(window_method("chain-3"))},
          {"adapting_fresh", adapting(window_method("chain-2", WindowFill::repeat, false))},
          {"row_ends", window_method("chain-3"), true},
          {"row_ends_adapting", adapting(window_method("chain-3")), true},
          {"row_ends_above", window_method("chain-2", WindowFill::above), true},
          {"partly_guided", window_method("chain-3"), false, 0},
          {"fan", window_method("fan-2-1-3")},
          {"deep_fan", window_method("fan-2-2-3")},
          {"wide_fan", window_method("fan-3-2-2", WindowFill::repeat)},
          {"fresh_fan", window_method("fan-2-2-3", WindowFill::above, false)},
          {"row_ends_fan", window_method("fan-2-2-3"), true},
          {"drafter", front_method("chain-3", 2)},
          {"drafter_and_fan", front_method("fan-2-2-3", 1)},
          {"row_ends_drafter", front_method("chain-3", 2), true},
          {"partly_guided_drafter", front_method("chain-3", 1), false, 0},
          {"partly_guided_fan", window_method("fan-2-1-2"), false, 0}};
}

INSTANTIATE_TEST_SUITE_P(Windows, JacobiDistribution, ::testing::ValuesIn(distribution_cases()),
                         [](const auto& test) { return test.param.name; });

// Classic bugs, planted behind the window's back: its tensors are those that it shares with slots.
enum class Bug {
  none,
  old_distribution_kept,
  shifted,
  test_reused,
  residual_filtered,
  sibling_chosen,
  front_unsaid
};

class Faulty : public Wrapped {
 public:
  Faulty(Bug bug, std::unique_ptr<DraftMethod> window) : Wrapped(std::move(window)), bug_(bug) {}

  Draft draft(const RunState& run) override {
    const at::Tensor old_rows = rows().clone();
    Draft draft = Wrapped::draft(run);
    // The rows that the window had there, for tokens of the drafter.
    if (bug_ == Bug::front_unsaid) rows().copy_(old_rows);
    if (bug_ != Bug::sibling_chosen) return draft;
    // The second candidate is what follows the first, instead of a sample.
    const at::Tensor chosen = (draft.tokens.select(1, 1) + 1) % rows().size(2);
    draft.tokens.select(1, 2).copy_(chosen);
    return draft;
  }

  void update(const Draft& draft, const Scores& scores, const Verified& verified,
              const RunState& run) override {
    at::Tensor &tokens = *per_image()[0].tensor, &rows = *per_image()[1].tensor;
    const at::Tensor old_tokens = tokens.clone(), old_rows = rows.clone();
    Wrapped::update(draft, scores, verified, run);
    const std::int64_t slots = tokens.size(1);
    if (draft.tokens.size(1) == 1 || bug_ == Bug::none || bug_ >= Bug::sibling_chosen) return;
    if (bug_ == Bug::shifted) return void(tokens.copy_(tokens.roll(1, 1)));
    if (bug_ == Bug::test_reused) {
      at::Tensor uniforms = ops::uniforms(run.seeds, run.counters.steps, ops::Purpose::window, 2 * slots + 2);
      uniforms.narrow(1, slots + 1, slots).copy_(uniforms.narrow(1, 1, slots).clone());
      const auto [again, probs] =
          ops::renew_window({verified.target, old_rows, draft.tokens, draft.nodes.parents,
                             draft.nodes.draft_rows, uniforms, run.temperature, slots},
                            verified.walk.count, true);
      tokens.copy_(again);
      rows.copy_(probs);
      return;
    }
    const at::Tensor place = verified.walk.count.unsqueeze(1) + 1 + at::arange(slots, at::kLong);
    const at::Tensor old = place.clamp_max(slots - 1);
    const at::Tensor stayed = (place < slots) & (old_tokens.gather(1, old) == tokens);
    const at::Tensor probs = old_rows.gather(1, old.unsqueeze(2).expand_as(rows));
    if (bug_ == Bug::residual_filtered) {  // once more, to its most probable token
      const at::Tensor stays = stayed | (place >= slots) | (tokens < 0);
      return void(tokens.copy_(at::where(stays, tokens, (rows - probs).argmax(2))));
    }
    rows.copy_(at::where(stayed.unsqueeze(2), probs, rows));
  }

 private:
  at::Tensor& rows() { return *per_image()[1].tensor; }

  Bug bug_;
};

template <Bug bug>
std::unique_ptr<DraftMethod> make_faulty(const Method& method, const Models& models) {
  return std::make_unique<Faulty>(bug, make_jacobi(method, models));
}

constexpr std::int64_t kFaultyImages = std::int64_t{1} << 16;

TEST(JacobiMutation, PlantedBugsAreFound) {
  at::set_num_threads(1);
  SyntheticShape moody = run_shape();
  moody.weight_scale = 4;  // rows change much with what stands before them
  const Toy toy(moody);
  const JointDistribution exact = lossless_distribution(toy, run_sampling());
  const auto fits_with = [&](MakeDraftMethod make, const char* window = "chain-3", std::int64_t front = 0,
                             std::int64_t images = kFaultyImages) {
    Method method = front_method(window, front);
    method.draft_method = make;
    return bool(fits(exact, counted_distribution(toy, run_sampling(), distribution_images(images),
                                                 [&](const Prompts& prompts, const auto& requests) {
                                                   return decode(toy.models(), method, prompts, requests,
                                                                 toy.grid());
                                                 })));
  };
  EXPECT_TRUE(fits_with(&make_faulty<Bug::none>));
  EXPECT_FALSE(fits_with(&make_faulty<Bug::old_distribution_kept>));
  EXPECT_FALSE(fits_with(&make_faulty<Bug::shifted>));
  EXPECT_FALSE(
      fits_with(&make_faulty<Bug::test_reused>, "chain-3", 0, 4 * kFaultyImages));  // the smallest trace
  EXPECT_FALSE(fits_with(&make_faulty<Bug::residual_filtered>));
  EXPECT_TRUE(fits_with(&make_faulty<Bug::none>, "fan-2-1-3"));
  EXPECT_FALSE(fits_with(&make_faulty<Bug::sibling_chosen>, "fan-2-1-3"));
  EXPECT_TRUE(fits_with(&make_faulty<Bug::none>, "chain-3", 2));
  EXPECT_FALSE(fits_with(&make_faulty<Bug::front_unsaid>, "chain-3", 2));
}

}  // namespace
}  // namespace lamplighter::test

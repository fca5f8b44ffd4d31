#include "propose/windows/jacobi.h"

#include <ATen/Parallel.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/where.h>
#include <gtest/gtest.h>

#include <ostream>

#include "tests/decode/loop_law.h"

namespace lamplighter::test {
namespace {

// Block verification of a window asks that its drafts do not depend on each other: all are drawn anew.
Method block_window() {
  Method method = window_method("chain-3", WindowFill::uniform, false);
  method.judge.rule = Rule::block;
  return method;
}

// As SJD-PAC's program draws.
Method official_window(const char* window) {
  Method method = window_method(window);
  method.judge.rule = Rule::official_pac;
  return method;
}

class JacobiTest : public ::testing::Test {
 protected:
  void SetUp() override { at::set_num_threads(1); }

  static SyntheticShape shape(bool row_ends = false) {
    SyntheticShape shape;
    shape.row_ends = row_ends;
    shape.vocabulary = 6;
    shape.rows = 4;
    shape.columns = 5;
    return shape;
  }

  static std::vector<DecodeRequest> requests(float temperature) {
    std::vector<DecodeRequest> all(4);
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      all[seed].sampling.temperature = temperature;
      all[seed].seed = seed;
    }
    return all;
  }
};

// With one row a window drafts nothing that could differ; with more the fixed point is the same.
TEST_F(JacobiTest, GreedyTokensAreThoseOfAutoregression) {
  for (const bool row_ends : {false, true}) {
    const Toy toy(shape(row_ends));
    const Prompts prompts = toy.prompts({0, 1, 2, 3}, true);
    const at::Tensor expected = decode(toy.models(), {}, prompts, requests(0), toy.grid());
    for (const char* chain : {"chain-1", "chain-4", "chain-9", "fan-2-1-4", "fan-3-2-6"}) {
      for (const WindowFill fill : {WindowFill::uniform, WindowFill::random, WindowFill::repeat,
                                    WindowFill::sample, WindowFill::above}) {
        std::int64_t cycles = 0;
        const at::Tensor codes = decode(toy.models(), window_method(chain, fill), prompts, requests(0),
                                        toy.grid(), [&](const Report&) { return ++cycles > 0; });
        EXPECT_TRUE(at::equal(codes, expected)) << chain;
        EXPECT_LT(cycles, toy.grid().tokens()) << chain;
      }
    }
  }
}

TEST_F(JacobiTest, GreedyTokensWithADrafterInFrontToo) {
  const Toy toy(shape());
  const Prompts prompts = toy.prompts({0, 1, 2, 3}, true);
  const at::Tensor expected = decode(toy.models(), {}, prompts, requests(0), toy.grid());
  for (const std::int64_t front : {1, 2, 4})
    EXPECT_TRUE(at::equal(
        decode(toy.models(), front_method("chain-4", front), prompts, requests(0), toy.grid()), expected));
}

// A drafter that fills the whole window is the drafter alone, but for its place in the numbers.
TEST_F(JacobiTest, AWindowFullOfTheDrafterTakesItsCycles) {
  const Toy toy(shape());
  const auto cycles = [&](const Method& method) {
    std::int64_t count = 0;
    decode(toy.models(), method, toy.prompts({0, 1, 2, 3}, true), requests(1), toy.grid(),
           [&](const Report&) { return ++count > 0; });
    return count;
  };
  EXPECT_EQ(cycles(front_method("chain-4", 4)), cycles(static_method(preset_tree("chain-4"))));
}

// A picture does not depend on those beside it.
TEST_F(JacobiTest, PicturesOfABatchAreThoseDrawnAlone) {
  const Toy toy(shape());
  const std::vector<DecodeRequest> all = requests(1);
  const Prompts prompts = toy.prompts({0, 1, 2, 3}, true);
  const Method methods[] = {window_method("chain-5", WindowFill::above),
                            window_method("fan-3-2-5", WindowFill::above), front_method("fan-2-2-5", 2),
                            official_window("fan-3-2-5"), official_window("chain-4")};
  for (const Method& method : methods) {
    const at::Tensor together = decode(toy.models(), method, prompts, all, toy.grid());
    for (std::int64_t image = 0; image < 4; ++image) {
      const at::Tensor alone = decode(toy.models(), method, toy.prompts({image}, true),
                                      {all[static_cast<std::size_t>(image)]}, toy.grid());
      EXPECT_TRUE(at::equal(alone, together.narrow(0, image, 1))) << method.tree->size() << " " << image;
    }
  }
}

// Of equal length, a fan's window commits more tokens a cycle.
TEST_F(JacobiTest, MoreCandidatesTakeFewerCycles) {
  const Toy toy(shape());
  const auto cycles = [&](const char* window) {
    std::int64_t count = 0;
    const auto counted = [&](const Report&) { return ++count > 0; };
    decode(toy.models(), window_method(window), toy.prompts({0, 1, 2, 3}, true), requests(1), toy.grid(),
           counted);
    return count;
  };
  EXPECT_LT(cycles("fan-5-1-4"), cycles("chain-4"));
  EXPECT_LT(cycles("fan-5-2-4"), cycles("fan-5-1-4"));
}

struct WindowCase {
  std::string name;
  Method method;
  bool row_ends = false;
  std::int64_t interval = -1;
};

void PrintTo(const WindowCase& test, std::ostream* out) {
  *out << test.name;
}

class JacobiLaw : public ::testing::TestWithParam<WindowCase> {
 protected:
  void SetUp() override { at::set_num_threads(1); }
};

TEST_P(JacobiLaw, IsThatOfTheTarget) {
  const Toy toy(law_shape(GetParam().row_ends));
  SamplingOptions sampling = law_sampling();
  sampling.cfg_interval = GetParam().interval;
  const std::int64_t pictures = law_pictures(std::int64_t{1} << 15);
  const DrawnLaw drawn = drawn_law(toy, toy.models(), GetParam().method, sampling, pictures);
  EXPECT_GT(drawn.accepted, pictures / 6);
  EXPECT_TRUE(fits(exact_law(toy, sampling), drawn.counts));
}

TEST_P(JacobiLaw, HoldsWhereSlotsAreRefilled) {
  const Toy toy(law_shape(GetParam().row_ends));
  SamplingOptions sampling = law_sampling();
  sampling.cfg_interval = GetParam().interval;
  EXPECT_TRUE(fits(exact_law(toy, sampling),
                   law_of_slots(toy, GetParam().method, sampling, law_pictures(1 << 13), 48)));
}

std::vector<WindowCase> law_cases() {
  return {{"uniform", window_method("chain-3")},
          {"fresh", window_method("chain-3", WindowFill::uniform, false)},
          {"block", block_window()},
          {"random", window_method("chain-2", WindowFill::random)},
          {"repeat", window_method("chain-3", WindowFill::repeat)},
          {"sample", window_method("chain-3", WindowFill::sample)},
          {"above", window_method("chain-3", WindowFill::above)},
          {"row_ends", window_method("chain-3"), true},
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

INSTANTIATE_TEST_SUITE_P(Windows, JacobiLaw, ::testing::ValuesIn(law_cases()),
                         [](const auto& test) { return test.param.name; });

// A window of the rule official_pac that compares what it keeps with the cycle that it learnt from: the
// places behind the walk's end by first children, and where these end, by the chain of first candidates.
class Watched : public Proposer {
 public:
  explicit Watched(std::unique_ptr<Proposer> window) : window_(std::move(window)) {}

  static inline std::int64_t kept_drafts = 0, new_drafts = 0, off_the_chain = 0;

  TreeShape shape() const override { return window_->shape(); }
  void allocate(const RunShape& shape, std::int64_t rows) override { window_->allocate(shape, rows); }
  Draft propose(const RunState& run) override { return window_->propose(run); }
  std::vector<PerImage> per_image() override { return window_->per_image(); }

  void learn(const Draft& draft, const Scores& scores, const Judged& judged, const KeptRows& kept,
             const RunState& run) override {
    window_->learn(draft, scores, judged, kept, run);
    if (draft.tokens.size(1) == 1) return;
    const at::Tensor target = ops::probabilities(judged.target);
    const at::Tensor tests = ops::uniforms(run.seeds, run.steps, ops::Purpose::accept, draft.tokens.size(1));
    for (std::int64_t image = 0; image < run.images(); ++image) {
      const auto count = judged.count[image].item<std::int64_t>();
      const auto end = judged.path[image][count].item<std::int64_t>();
      compare(draft, target[image], tests[image], image, count, end);
    }
  }

 private:
  static std::int64_t first_child(const Draft& draft, std::int64_t node) {
    for (std::int64_t child = node + 1; node >= 0 && child < draft.tokens.size(1); ++child)
      if (draft.parents[0][child].item<std::int64_t>() == node) return child;
    return -1;
  }

  void compare(const Draft& draft, const at::Tensor& target, const at::Tensor& tests, std::int64_t image,
               std::int64_t count, std::int64_t end) {
    const at::Tensor tokens = (*per_image()[0].tensor)[image], rows = (*per_image()[1].tensor)[image],
                     others = (*per_image()[3].tensor)[image];
    const std::int64_t slots = tokens.size(0);
    std::int64_t node = end, on_chain = 0;
    for (std::int64_t depth = 0; depth < count; ++depth) on_chain = first_child(draft, on_chain);
    if (on_chain != end) ++off_the_chain;
    for (std::int64_t slot = 0, depth = count + 1; slot < slots; ++slot, ++depth) {
      const auto token = tokens[slot].item<std::int64_t>();
      if (depth >= slots) {
        EXPECT_EQ(token, -1);
        EXPECT_TRUE(others.numel() == 0 || others[slot].max().item<std::int64_t>() == -1);
        continue;
      }
      node = first_child(draft, node);
      on_chain = first_child(draft, on_chain);
      const std::int64_t tells = node >= 0 ? node : on_chain, child = first_child(draft, tells);
      EXPECT_TRUE(at::equal(rows[slot], target[tells]));
      ASSERT_GE(token, 0);
      const auto drafted = child < 0 ? -1 : draft.tokens[image][child].item<std::int64_t>();
      const bool stays =
          drafted >= 0 &&
          tests[child].item<double>() * draft.distributions.values[image][depth][drafted].item<double>() <
              target[tells][drafted].item<double>();
      ++(stays ? kept_drafts : new_drafts);
      if (drafted >= 0) {
        EXPECT_EQ(token == drafted, stays);
      }
    }
  }

  std::unique_ptr<Proposer> window_;
};

std::unique_ptr<Proposer> make_watched(const Method& method, const Models& models) {
  return std::make_unique<Watched>(make_jacobi(method, models));
}

TEST_F(JacobiTest, WhatStandsInAnOfficialWindowIsWhatItsCycleLeft) {
  const Toy toy(shape());
  for (const char* window : {"fan-2-1-4", "fan-3-2-5", "fan-2-3-4", "fan-2-2-2", "chain-4"}) {
    SCOPED_TRACE(window);
    Method method = official_window(window);
    method.proposer = &make_watched;
    decode(toy.models(), method, toy.prompts({0, 1, 2, 3}, true), requests(1), toy.grid());
  }
  EXPECT_GT(Watched::kept_drafts, 20);
  EXPECT_GT(Watched::new_drafts, 20);
  EXPECT_GT(Watched::off_the_chain, 5);
}

// The rule is relaxed, and how far it is off can be seen.
TEST_F(JacobiTest, OfficialWindowsHaveAnotherLaw) {
  const Toy toy(law_shape());
  const SamplingOptions sampling = law_sampling();
  for (const char* window : {"fan-2-1-3", "fan-2-2-3"}) {
    const DrawnLaw drawn =
        drawn_law(toy, toy.models(), official_window(window), sampling, law_pictures(std::int64_t{1} << 15));
    EXPECT_FALSE(fits(exact_law(toy, sampling), drawn.counts)) << window;
  }
}

// Classic bugs, planted behind the window's back: its tensors are those that it shares with slots.
enum class Bug { none, old_law_kept, shifted, test_reused, sibling_chosen, front_unsaid };

class Faulty : public Proposer {
 public:
  Faulty(Bug bug, std::unique_ptr<Proposer> window) : bug_(bug), window_(std::move(window)) {}

  TreeShape shape() const override { return window_->shape(); }
  void allocate(const RunShape& shape, std::int64_t rows) override { window_->allocate(shape, rows); }
  Draft propose(const RunState& run) override {
    const at::Tensor old_rows = rows().clone();
    Draft draft = window_->propose(run);
    // The rows that the window had there, for tokens of the drafter.
    if (bug_ == Bug::front_unsaid) rows().copy_(old_rows);
    if (bug_ != Bug::sibling_chosen) return draft;
    // The second candidate is what follows the first, instead of a draw.
    const at::Tensor chosen = (draft.tokens.select(1, 1) + 1) % rows().size(2);
    draft.tokens.select(1, 2).copy_(chosen);
    return draft;
  }
  std::vector<PerImage> per_image() override { return window_->per_image(); }

  void learn(const Draft& draft, const Scores& scores, const Judged& judged, const KeptRows& kept,
             const RunState& run) override {
    at::Tensor &tokens = *per_image()[0].tensor, &rows = *per_image()[1].tensor;
    const at::Tensor old_tokens = tokens.clone(), old_rows = rows.clone();
    window_->learn(draft, scores, judged, kept, run);
    const std::int64_t slots = tokens.size(1);
    if (draft.tokens.size(1) == 1 || bug_ == Bug::none || bug_ >= Bug::sibling_chosen) return;
    if (bug_ == Bug::shifted) return void(tokens.copy_(tokens.roll(1, 1)));
    if (bug_ == Bug::test_reused) {
      at::Tensor uniforms = ops::uniforms(run.seeds, run.steps, ops::Purpose::window, 2 * slots + 2);
      uniforms.narrow(1, slots + 1, slots).copy_(uniforms.narrow(1, 1, slots).clone());
      const auto [again, laws] = ops::renew_window({judged.target, old_rows, draft.tokens, draft.parents,
                                                    draft.draft_rows, uniforms, run.temperature, slots},
                                                   judged.count, true);
      tokens.copy_(again);
      rows.copy_(laws);
      return;
    }
    const at::Tensor place = judged.count.unsqueeze(1) + 1 + at::arange(slots, at::kLong);
    const at::Tensor old = place.clamp_max(slots - 1);
    const at::Tensor stayed = (place < slots) & (old_tokens.gather(1, old) == tokens);
    rows.copy_(at::where(stayed.unsqueeze(2), old_rows.gather(1, old.unsqueeze(2).expand_as(rows)), rows));
  }

 private:
  at::Tensor& rows() { return *per_image()[1].tensor; }

  Bug bug_;
  std::unique_ptr<Proposer> window_;
};

template <Bug bug>
std::unique_ptr<Proposer> make_faulty(const Method& method, const Models& models) {
  return std::make_unique<Faulty>(bug, make_jacobi(method, models));
}

TEST_F(JacobiTest, PlantedBugsAreFound) {
  constexpr std::int64_t kPictures = std::int64_t{1} << 18;
  SyntheticShape moody = law_shape();
  moody.weight_scale = 4;  // rows change much with what stands before them
  const Toy toy(moody);
  const Law exact = exact_law(toy, law_sampling());
  const auto fits_with = [&](MakeProposer make, const char* window = "chain-3", std::int64_t front = 0) {
    Method method = front_method(window, front);
    method.proposer = make;
    return bool(fits(exact, counted_law(toy, law_sampling(), law_pictures(kPictures),
                                        [&](const Prompts& prompts, const auto& requests) {
                                          return decode(toy.models(), method, prompts, requests, toy.grid());
                                        })));
  };
  EXPECT_TRUE(fits_with(&make_faulty<Bug::none>));
  EXPECT_FALSE(fits_with(&make_faulty<Bug::old_law_kept>));
  EXPECT_FALSE(fits_with(&make_faulty<Bug::shifted>));
  EXPECT_FALSE(fits_with(&make_faulty<Bug::test_reused>));
  EXPECT_TRUE(fits_with(&make_faulty<Bug::none>, "fan-2-1-3"));
  EXPECT_FALSE(fits_with(&make_faulty<Bug::sibling_chosen>, "fan-2-1-3"));
  EXPECT_TRUE(fits_with(&make_faulty<Bug::none>, "chain-3", 2));
  EXPECT_FALSE(fits_with(&make_faulty<Bug::front_unsaid>, "chain-3", 2));
}

}  // namespace
}  // namespace lamplighter::test

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <ostream>

#include "tests/propose/drafters/random_drafter.h"

namespace lamplighter::test {
namespace {

std::vector<DecodeRequest> requests(float temperature) {
  std::vector<DecodeRequest> all(4);
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    all[seed].sampling.temperature = temperature;
    all[seed].seed = seed;
  }
  return all;
}

class HeadsTest : public ::testing::TestWithParam<const char*> {
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
};

TEST_P(HeadsTest, GreedyTokensAreThoseOfAutoregression) {
  for (const bool row_ends : {false, true}) {
    const Guessed guessed(shape(row_ends), GetParam());
    const Prompts prompts = guessed.toy.prompts({0, 1, 2, 3}, true);
    const Grid grid = guessed.toy.grid();
    const at::Tensor expected = decode(guessed.models(), {}, prompts, requests(0), grid);
    for (const Tree& tree : {preset_tree("chain-3"), bushy_tree()}) {
      const Method method = heads_method(GetParam(), tree, "exact", true);
      EXPECT_TRUE(at::equal(decode(guessed.models(), method, prompts, requests(0), grid), expected));
    }
  }
}

TEST_P(HeadsTest, PicturesOfABatchAreThoseDrawnAlone) {
  const Guessed guessed(shape(), GetParam());
  const Prompts prompts = guessed.toy.prompts({0, 1, 2, 3}, true);
  const Grid grid = guessed.toy.grid();
  for (const bool conditional : {false, true}) {
    Method method = heads_method(GetParam(), bushy_tree());
    method.conditional = conditional;
    const at::Tensor together = decode(guessed.models(), method, prompts, requests(1), grid);
    for (std::int64_t image = 0; image < 4; ++image) {
      const at::Tensor alone = decode(guessed.models(), method, guessed.toy.prompts({image}, true),
                                      {requests(1)[static_cast<std::size_t>(image)]}, grid);
      EXPECT_TRUE(at::equal(alone, together.narrow(0, image, 1))) << image;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, HeadsTest,
                         ::testing::Values("medusa", "mlp", "flash", "flash_compressed", "eagle_3"));

struct HeadsCase {
  std::string name, kind;
  Method method;
  bool row_ends = false;
  std::int64_t interval = -1;
};

void PrintTo(const HeadsCase& test, std::ostream* out) {
  *out << test.name;
}

class HeadsLaw : public ::testing::TestWithParam<HeadsCase> {
 protected:
  void SetUp() override { at::set_num_threads(1); }
};

TEST_P(HeadsLaw, IsThatOfTheTarget) {
  const Guessed guessed(law_shape(GetParam().row_ends), GetParam().kind);
  SamplingOptions sampling = law_sampling();
  sampling.cfg_interval = GetParam().interval;
  const std::int64_t pictures = law_pictures(std::int64_t{1} << 15);
  const DrawnLaw drawn = drawn_law(guessed.toy, guessed.models(), GetParam().method, sampling, pictures);
  EXPECT_GT(drawn.accepted, pictures / 6);
  EXPECT_TRUE(fits(exact_law(guessed.toy, sampling), drawn.counts));
}

TEST_P(HeadsLaw, HoldsWhereSlotsAreRefilled) {
  const Guessed guessed(law_shape(GetParam().row_ends), GetParam().kind);
  SamplingOptions sampling = law_sampling();
  sampling.cfg_interval = GetParam().interval;
  EXPECT_TRUE(fits(
      exact_law(guessed.toy, sampling),
      law_of_slots(guessed.toy, GetParam().method, sampling, law_pictures(1 << 13), 48, guessed.models())));
}

std::vector<HeadsCase> law_cases() {
  const Tree siblings = make_tree({{0}, {1}, {0, 0}, {0, 1}, {1, 0}, {0, 0, 0}});
  std::vector<HeadsCase> cases;
  for (const auto& [kind, drafter] : kinds()) {
    Method conditional = heads_method(kind, siblings);
    conditional.conditional = true;
    const std::vector<HeadsCase> of_kind{{"chain", kind, heads_method(kind, preset_tree("chain-3"))},
                                         {"block", kind, heads_method(kind, preset_tree("chain-3"), "block")},
                                         {"siblings", kind, heads_method(kind, siblings)},
                                         {"top", kind, heads_method(kind, siblings, "exact", true)},
                                         {"conditional", kind, conditional},
                                         {"row_ends", kind, heads_method(kind, siblings), true},
                                         {"partly_guided", kind, heads_method(kind, siblings), false, 0}};
    cases.insert(cases.end(), of_kind.begin(), of_kind.end());
  }
  cases.push_back({"traversal", "mlp", heads_method("mlp", siblings, "traversal")});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Trees, HeadsLaw, ::testing::ValuesIn(law_cases()),
                         [](const auto& test) { return test.param.kind + "_" + test.param.name; });

// Every token is judged by the probability of the one beside it.
class Shifted : public Proposer {
 public:
  explicit Shifted(std::unique_ptr<Proposer> inner) : inner_(std::move(inner)) {}

  TreeShape shape() const override { return inner_->shape(); }
  void allocate(const RunShape& shape, std::int64_t rows) override { inner_->allocate(shape, rows); }
  void begin(const Prompts& prompts, const Prefilled& prefilled, const RunState& run) override {
    inner_->begin(prompts, prefilled, run);
  }
  Draft propose(const RunState& run) override {
    Draft draft = inner_->propose(run);
    const at::Tensor laws = ops::probabilities(draft.distributions);
    draft.distributions = laws.roll(-1, 1).contiguous();
    return draft;
  }
  void learn(const Draft& draft, const Scores& scores, const Judged& judged, const KeptRows& kept,
             const RunState& run) override {
    inner_->learn(draft, scores, judged, kept, run);
  }
  std::vector<PerImage> per_image() override { return inner_->per_image(); }

 private:
  std::unique_ptr<Proposer> inner_;
};

template <MakeProposer make>
std::unique_ptr<Proposer> make_shifted(const Method& method, const Models& models) {
  return std::make_unique<Shifted>(make(method, models));
}

TEST(HeadsMutation, TheLawFindsLawsOfOtherTokens) {
  at::set_num_threads(1);
  const std::map<std::string, MakeProposer> shifted{{"medusa", &make_shifted<&make_medusa>},
                                                    {"mlp", &make_shifted<&make_mlp>},
                                                    {"flash", &make_shifted<&make_flash>},
                                                    {"eagle_3", &make_shifted<&make_eagle>}};
  for (const auto& [kind, proposer] : shifted) {
    const Guessed guessed(law_shape(), kind);
    Method method = heads_method(kind, preset_tree("chain-3"));
    method.proposer = proposer;
    const SamplingOptions sampling = law_sampling();
    const DrawnLaw drawn =
        drawn_law(guessed.toy, guessed.models(), method, sampling, law_pictures(std::int64_t{1} << 15));
    EXPECT_FALSE(fits(exact_law(guessed.toy, sampling), drawn.counts)) << kind;
  }
}

}  // namespace
}  // namespace lamplighter::test

#include <ATen/Parallel.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <ostream>

#include "tests/decode/toy_methods.h"
#include "tests/draft/drafters/random_drafter.h"
#include "tests/draft/method_distribution.h"
#include "tests/draft/wrapped.h"

namespace lamplighter::test {
namespace {

class HeadsTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { at::set_num_threads(1); }
};

TEST_P(HeadsTest, GreedyTokensAreThoseOfAutoregression) {
  for (const bool row_ends : {false, true}) {
    const Guessed guessed(small_shape(row_ends), GetParam());
    const Prompts prompts = guessed.toy.prompts({0, 1, 2, 3}, true);
    const Grid grid = guessed.toy.grid();
    const at::Tensor expected = decode(guessed.models(), {}, prompts, four_requests(0), grid);
    for (const Tree& tree : {preset_tree("chain-3"), bushy_tree()}) {
      const Method method = heads_method(GetParam(), tree, "exact", true);
      EXPECT_TRUE(at::equal(decode(guessed.models(), method, prompts, four_requests(0), grid), expected));
    }
  }
}

TEST_P(HeadsTest, ImagesOfABatchAreThoseSampledAlone) {
  const Guessed guessed(small_shape(), GetParam());
  const Prompts prompts = guessed.toy.prompts({0, 1, 2, 3}, true);
  const Grid grid = guessed.toy.grid();
  for (const bool conditional : {false, true}) {
    Method method = heads_method(GetParam(), bushy_tree());
    method.conditional = conditional;
    const at::Tensor together = decode(guessed.models(), method, prompts, four_requests(1), grid);
    for (std::int64_t image = 0; image < 4; ++image) {
      const at::Tensor alone = decode(guessed.models(), method, guessed.toy.prompts({image}, true),
                                      {four_requests(1)[static_cast<std::size_t>(image)]}, grid);
      EXPECT_TRUE(at::equal(alone, together.narrow(0, image, 1))) << image;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, HeadsTest,
                         ::testing::Values("medusa", "mlp", "flash", "flash_compressed", "eagle_3"));

struct HeadsCase {
  std::string kind;
  MethodCase distribution;
};

void PrintTo(const HeadsCase& test, std::ostream* out) {
  *out << test.kind << " " << test.distribution.name;
}

class HeadsDistribution : public ::testing::TestWithParam<HeadsCase> {
 protected:
  void SetUp() override { at::set_num_threads(1); }
};

TEST_P(HeadsDistribution, IsThatOfTheTarget) {
  const Guessed guessed(run_shape(GetParam().distribution.row_ends), GetParam().kind);
  expect_distribution(guessed.toy, guessed.models(), GetParam().distribution);
}

TEST_P(HeadsDistribution, HoldsWhereSlotsAreRefilled) {
  const Guessed guessed(run_shape(GetParam().distribution.row_ends), GetParam().kind);
  expect_distribution_of_slots(guessed.toy, guessed.models(), GetParam().distribution);
}

std::vector<HeadsCase> distribution_cases() {
  const Tree siblings = make_tree({{0}, {1}, {0, 0}, {0, 1}, {1, 0}, {0, 0, 0}});
  std::vector<HeadsCase> cases;
  for (const auto& [kind, drafter] : kinds()) {
    if (kind == "refine") continue;  // drafts chains alone
    Method conditional = heads_method(kind, siblings);
    conditional.conditional = true;
    const std::vector<MethodCase> of_kind{{"chain", heads_method(kind, preset_tree("chain-3"))},
                                          {"block", heads_method(kind, preset_tree("chain-3"), "block")},
                                          {"siblings", heads_method(kind, siblings)},
                                          {"top", heads_method(kind, siblings, "exact", true)},
                                          {"conditional", conditional},
                                          {"row_ends", heads_method(kind, siblings), true},
                                          {"partly_guided", heads_method(kind, siblings), false, 0}};
    for (const MethodCase& distribution : of_kind) cases.push_back({kind, distribution});
  }
  cases.push_back({"mlp", {"traversal", heads_method("mlp", siblings, "traversal")}});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Trees, HeadsDistribution, ::testing::ValuesIn(distribution_cases()),
                         [](const auto& test) {
                           return test.param.kind + "_" + test.param.distribution.name;
                         });

// Every token is verified by the probability of the one beside it.
class Shifted : public Wrapped {
 public:
  using Wrapped::Wrapped;

  Draft draft(const RunState& run) override {
    Draft draft = Wrapped::draft(run);
    const at::Tensor probs = ops::probabilities(draft.distributions);
    draft.distributions = probs.roll(-1, 1).contiguous();
    return draft;
  }
};

template <MakeDraftMethod make>
std::unique_ptr<DraftMethod> make_shifted(const Method& method, const Models& models) {
  return std::make_unique<Shifted>(make(method, models));
}

TEST(HeadsMutation, TheDistributionFindsDistributionsOfOtherTokens) {
  at::set_num_threads(1);
  const std::map<std::string, MakeDraftMethod> shifted{{"medusa", &make_shifted<&make_medusa>},
                                                       {"mlp", &make_shifted<&make_mlp>},
                                                       {"flash", &make_shifted<&make_flash>},
                                                       {"eagle_3", &make_shifted<&make_eagle>},
                                                       {"refine", &make_shifted<&make_refine>}};
  for (const auto& [kind, draft_method] : shifted) {
    const Guessed guessed(run_shape(), kind);
    Method method = heads_method(kind, preset_tree("chain-3"));
    method.draft_method = draft_method;
    const SamplingOptions sampling = run_sampling();
    const SampledDistribution sampled = sampled_distribution(guessed.toy, guessed.models(), method, sampling,
                                                             distribution_images(std::int64_t{1} << 15));
    EXPECT_FALSE(fits(lossless_distribution(guessed.toy, sampling), sampled.counts)) << kind;
  }
}

}  // namespace
}  // namespace lamplighter::test

#include "propose/medusa.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/api/module.h>

#include <ostream>

#include "tests/decode/loop_law.h"

namespace lamplighter::test {
namespace {

constexpr std::int64_t kHeads = 3;

// Heads of one product each, with random weights.
Drafter random_heads(const Target& target) {
  const std::int64_t width = target.manifest().target.hidden, codes = target.manifest().target.head;
  std::mt19937 rng(7);
  torch::jit::Module module("heads");
  module.register_buffer("weight", 0.3 * random_tensor(rng, {kHeads, width, codes}, at::kFloat));
  module.define(R"(
    def heads(self, hidden):
        return torch.matmul(hidden.unsqueeze(1), self.weight).squeeze(2)
  )");
  DrafterEntry entry;
  entry.kind = "medusa";
  entry.heads = kHeads;
  return {entry, Module(module, "heads", {"heads"}, target.placement())};
}

Method medusa_method(Tree tree, const std::string& rule = "exact", bool top = false) {
  Method method = static_method(std::move(tree), rule, top);
  method.proposer = &make_medusa;
  return method;
}

struct Guessed {
  explicit Guessed(const SyntheticShape& shape) : toy(shape), drafter(random_heads(toy.target)) {}
  Models models() const { return {&toy.target, &drafter}; }

  Toy toy;
  Drafter drafter;
};

std::vector<DecodeRequest> requests(float temperature) {
  std::vector<DecodeRequest> all(4);
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    all[seed].sampling.temperature = temperature;
    all[seed].seed = seed;
  }
  return all;
}

class MedusaTest : public ::testing::Test {
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

TEST_F(MedusaTest, GreedyTokensAreThoseOfAutoregression) {
  for (const bool row_ends : {false, true}) {
    const Guessed guessed(shape(row_ends));
    const Prompts prompts = guessed.toy.prompts({0, 1, 2, 3}, true);
    const Grid grid = guessed.toy.grid();
    const at::Tensor expected = decode(guessed.models(), {}, prompts, requests(0), grid);
    for (const Tree& tree : {preset_tree("chain-3"), bushy_tree()}) {
      const Method method = medusa_method(tree, "exact", true);
      EXPECT_TRUE(at::equal(decode(guessed.models(), method, prompts, requests(0), grid), expected));
    }
  }
}

TEST_F(MedusaTest, PicturesOfABatchAreThoseDrawnAlone) {
  const Guessed guessed(shape());
  const Prompts prompts = guessed.toy.prompts({0, 1, 2, 3}, true);
  const Grid grid = guessed.toy.grid();
  for (const bool conditional : {false, true}) {
    Method method = medusa_method(bushy_tree());
    method.conditional = conditional;
    const at::Tensor together = decode(guessed.models(), method, prompts, requests(1), grid);
    for (std::int64_t image = 0; image < 4; ++image) {
      const at::Tensor alone = decode(guessed.models(), method, guessed.toy.prompts({image}, true),
                                      {requests(1)[static_cast<std::size_t>(image)]}, grid);
      EXPECT_TRUE(at::equal(alone, together.narrow(0, image, 1))) << image;
    }
  }
}

struct MedusaCase {
  std::string name;
  Method method;
  bool row_ends = false;
  std::int64_t interval = -1;
};

void PrintTo(const MedusaCase& test, std::ostream* out) {
  *out << test.name;
}

class MedusaLaw : public ::testing::TestWithParam<MedusaCase> {
 protected:
  void SetUp() override { at::set_num_threads(1); }
};

bool law_fits(const Guessed& guessed, const Method& method, std::int64_t interval, std::int64_t* accepted) {
  SamplingOptions sampling = law_sampling();
  sampling.cfg_interval = interval;
  const Law counts = counted_law(guessed.toy, sampling, law_pictures(std::int64_t{1} << 15),
                                 [&](const Prompts& prompts, const auto& all) {
                                   return decode(guessed.models(), method, prompts, all, guessed.toy.grid(),
                                                 [&](const Report& report) {
                                                   for (const ImageReport& image : report.images)
                                                     *accepted += image.accepted;
                                                   return true;
                                                 });
                                 });
  return fits(exact_law(guessed.toy, sampling), counts);
}

TEST_P(MedusaLaw, IsThatOfTheTarget) {
  const Guessed guessed(law_shape(GetParam().row_ends));
  std::int64_t accepted = 0;
  EXPECT_TRUE(law_fits(guessed, GetParam().method, GetParam().interval, &accepted));
  EXPECT_GT(accepted, law_pictures(std::int64_t{1} << 15) / 6);
}

TEST_P(MedusaLaw, HoldsWhereSlotsAreRefilled) {
  const Guessed guessed(law_shape(GetParam().row_ends));
  SamplingOptions sampling = law_sampling();
  sampling.cfg_interval = GetParam().interval;
  EXPECT_TRUE(fits(
      exact_law(guessed.toy, sampling),
      law_of_slots(guessed.toy, GetParam().method, sampling, law_pictures(1 << 13), 48, guessed.models())));
}

std::vector<MedusaCase> law_cases() {
  const Tree siblings = make_tree({{0}, {1}, {0, 0}, {0, 1}, {1, 0}, {0, 0, 0}});
  Method conditional = medusa_method(siblings);
  conditional.conditional = true;
  return {{"chain", medusa_method(preset_tree("chain-3"))},
          {"block", medusa_method(preset_tree("chain-3"), "block")},
          {"siblings", medusa_method(siblings)},
          {"top", medusa_method(siblings, "exact", true)},
          {"conditional", conditional},
          {"row_ends", medusa_method(siblings), true},
          {"partly_guided", medusa_method(siblings), false, 0}};
}

INSTANTIATE_TEST_SUITE_P(Trees, MedusaLaw, ::testing::ValuesIn(law_cases()),
                         [](const auto& test) { return test.param.name; });

// A classic of laws that belong to depths: every token is judged by the law of the depth after its own.
class Shifted : public Proposer {
 public:
  explicit Shifted(std::unique_ptr<Proposer> inner) : inner_(std::move(inner)) {}

  TreeShape shape() const override { return inner_->shape(); }
  void allocate(const RunShape& shape, std::int64_t rows) override { inner_->allocate(shape, rows); }
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

std::unique_ptr<Proposer> make_shifted(const Method& method, const Models& models) {
  return std::make_unique<Shifted>(make_medusa(method, models));
}

TEST_F(MedusaTest, TheLawFindsLawsOfOtherDepths) {
  const Guessed guessed(law_shape());
  Method method = medusa_method(preset_tree("chain-3"));
  method.proposer = &make_shifted;
  std::int64_t accepted = 0;
  EXPECT_FALSE(law_fits(guessed, method, -1, &accepted));
}

}  // namespace
}  // namespace lamplighter::test

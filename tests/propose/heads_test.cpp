#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/api/module.h>

#include <ostream>

#include "propose/medusa.h"
#include "propose/mlp.h"
#include "tests/decode/loop_law.h"

namespace lamplighter::test {
namespace {

constexpr std::int64_t kHeads = 3;

// Networks of random weights: heads of one product each, or steps that know the tokens before.
constexpr const char* kMedusa = R"(
    def heads(self, hidden):
        return torch.matmul(hidden.unsqueeze(1), self.weight).squeeze(2)
  )";
constexpr const char* kMlp = R"(
    def step(self, state, ids, number):
        return torch.tanh(torch.matmul(state, self.projection) + torch.embedding(self.embedding, ids))
    def logits(self, state, number):
        return torch.matmul(state, self.weight[int(number)])
  )";

Drafter random_drafter(const Target& target, const std::string& kind) {
  const Manifest& manifest = target.manifest();
  const std::int64_t width = manifest.target.hidden;
  std::mt19937 rng(7);
  const auto random = [&](const std::vector<std::int64_t>& sizes) {
    return 0.3 * random_tensor(rng, sizes, at::kFloat);
  };
  torch::jit::Module module("drafter");
  module.register_buffer("weight", random({kHeads, width, manifest.target.head}));
  module.register_buffer("projection", random({width, width}));
  module.register_buffer("embedding", random({manifest.tokens.vocabulary, width}));
  module.define(kind == "medusa" ? kMedusa : kMlp);
  DrafterEntry entry;
  entry.kind = kind;
  entry.heads = kHeads;
  const std::vector<std::string> methods =
      kind == "medusa" ? std::vector<std::string>{"heads"} : std::vector<std::string>{"step", "logits"};
  return {entry, Module(module, "drafter", methods, target.placement())};
}

Method heads_method(const std::string& kind, Tree tree, const std::string& rule = "exact", bool top = false) {
  Method method = static_method(std::move(tree), rule, top);
  method.proposer = kind == "medusa" ? &make_medusa : &make_mlp;
  return method;
}

struct Guessed {
  Guessed(const SyntheticShape& shape, const std::string& kind)
      : toy(shape), drafter(random_drafter(toy.target, kind)) {}
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

INSTANTIATE_TEST_SUITE_P(Kinds, HeadsTest, ::testing::Values("medusa", "mlp"));

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
  for (const std::string kind : {"medusa", "mlp"}) {
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

TEST(HeadsMutation, TheLawFindsLawsOfOtherTokens) {
  at::set_num_threads(1);
  const Guessed guessed(law_shape(), "medusa");
  Method method = heads_method("medusa", preset_tree("chain-3"));
  method.proposer = &make_shifted;
  const SamplingOptions sampling = law_sampling();
  const DrawnLaw drawn =
      drawn_law(guessed.toy, guessed.models(), method, sampling, law_pictures(std::int64_t{1} << 15));
  EXPECT_FALSE(fits(exact_law(guessed.toy, sampling), drawn.counts));
}

}  // namespace
}  // namespace lamplighter::test

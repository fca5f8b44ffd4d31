#include <ATen/Parallel.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include "tests/decode/fresh_caches.h"
#include "tests/decode/toy.h"
#include "tests/decode/toy_methods.h"

// Drafters that read the padding in front of captions, as the published LlamaGen drafters do.
namespace lamplighter::test {
namespace {

constexpr std::int64_t kLength = 7;  // rows of a padded prompt
const std::vector<std::int64_t> kPaddedNumbers{0, 2, 6, 3};

SyntheticShape padded_shape() {
  SyntheticShape shape;
  shape.vocabulary = 12;
  shape.rows = 3;
  shape.columns = 4;
  shape.prompt_length = kLength;
  shape.weight_scale = 1.5;
  return shape;
}

std::vector<DecodeRequest> requests(const std::vector<std::int64_t>& numbers, float scale,
                                    float temperature) {
  SamplingOptions sampling;
  sampling.cfg_scale = scale;
  sampling.temperature = temperature;
  std::vector<DecodeRequest> result;
  for (const std::int64_t number : numbers)
    result.push_back({sampling, 50 + static_cast<std::uint64_t>(number)});
  return result;
}

Prompts prompts(const Toy& toy, const std::vector<std::int64_t>& numbers, bool guided, bool padded = true) {
  std::vector<Condition> conditions;
  for (const std::int64_t number : numbers) conditions.push_back(toy.condition(number));
  return embed_prompts(toy.models(), conditions, guided, padded);
}

Method tree_method(bool conditional, bool top) {
  Method method = static_method(bushy_tree(), "exact", top);
  method.conditional = conditional;
  return method;
}

class PaddingTest : public ::testing::TestWithParam<std::tuple<float, bool>> {
 protected:
  void SetUp() override { at::set_num_threads(1); }
  float scale() const { return std::get<0>(GetParam()); }
  bool conditional() const { return std::get<1>(GetParam()); }

  // The drafter's cache [1, 2, 1, heads, T - 1, D] of a sequence: features of the padding, which the target
  // sees after all of the prompt, then features of the prompt.
  at::Tensor expected_cache(const Prompts& prompts, std::int64_t sequence, bool unconditional) const {
    const std::int64_t valid = prompts.valid[sequence].item<std::int64_t>(), padding = kLength - valid;
    const at::Tensor own = prompts.rows.narrow(0, sequence, 1).narrow(1, 0, valid);
    const at::Tensor null_caption = toy_.target.embed_unconditional(at::ones({1, kLength}, at::kLong));
    at::Tensor padded = null_caption.narrow(1, 0, padding);
    if (!unconditional) padded = at::zeros_like(padded);
    const at::Tensor positions =
        at::cat({at::arange(padding, kLength, at::kLong), at::full({padding}, kLength - 1, at::kLong)});
    const at::Tensor causal = at::empty({0}, at::kLong), none = at::zeros({1}, at::kLong);
    const at::Tensor features = toy_.target
                                    .forward(at::cat({own, padded}, 1), positions.unsqueeze(0), causal, none,
                                             toy_.target.make_cache(1, kLength))
                                    .features;
    const at::Tensor rows = at::cat({features.narrow(1, valid, padding), features.narrow(1, 0, valid)}, 1)
                                .narrow(1, 0, kLength - 1);
    const at::Tensor ids = at::full({1, kLength - 1}, *toy_.drafter.entry().prompt_id, at::kLong);
    at::Tensor cache = toy_.drafter.make_cache(1, kLength - 1);
    const EagleLayer layer(toy_.drafter);
    layer.forward(layer.embed(ids), rows.contiguous(), at::arange(kLength - 1, at::kLong).unsqueeze(0),
                  causal, none, cache);
    return cache;
  }

  const Toy toy_{padded_shape()};
};

TEST_P(PaddingTest, IsInFrontOfThePromptForTheDrafterAlone) {
  const c10::InferenceMode inference;
  const std::vector<DecodeRequest> samples = requests(kPaddedNumbers, scale(), 1);
  const bool guided = is_guided(samples);
  const Method method = tree_method(conditional(), false);
  const Prompts padded = prompts(toy_, kPaddedNumbers, guided);
  const Prompts plain = prompts(toy_, kPaddedNumbers, guided, false);
  DecodeState state = make_state(toy_.models(), method, padded, samples, toy_.grid());
  DecodeState other = make_state(toy_.models(), method, plain, samples, toy_.grid());
  const Scores root = prefill(toy_.models(), padded, state);
  EXPECT_TRUE(at::equal(root.hidden, prefill(toy_.models(), plain, other).hidden));
  EXPECT_TRUE(at::equal(state.run.counters.lengths, other.run.counters.lengths) &&
              at::equal(state.run.counters.position, other.run.counters.position));
  const std::int64_t step = guided && conditional() ? 2 : 1;
  for (std::int64_t s = 0; s < padded.valid.size(0); ++s) {
    const std::int64_t length = state.run.counters.lengths[s].item<std::int64_t>();
    EXPECT_TRUE(at::equal(state.run.cache.select(2, s).narrow(3, 0, length),
                          other.run.cache.select(2, s).narrow(3, 0, length)));
    if (s % step != 0) continue;
    EXPECT_EQ(eagle(state).lengths[s / step].item<std::int64_t>(), kLength - 1);
    EXPECT_TRUE(at::equal(eagle(state).cache.narrow(2, s / step, 1).narrow(4, 0, kLength - 1),
                          expected_cache(padded, s, guided && s % 2 == 1)))
        << "sequence " << s;
  }
}

TEST_P(PaddingTest, ChangesNoImage) {
  const c10::InferenceMode inference;
  for (const bool top : {false, true}) {
    const float temperature = top ? 0.0F : 1.0F;
    const Method method = tree_method(conditional(), top);
    const std::vector<DecodeRequest> samples = requests(kPaddedNumbers, scale(), temperature);
    const bool guided = is_guided(samples);
    const at::Tensor together =
        decode(toy_.models(), method, prompts(toy_, kPaddedNumbers, guided), samples, toy_.grid());
    for (std::size_t i = 0; i < kPaddedNumbers.size(); ++i) {
      const std::vector<std::int64_t> one{kPaddedNumbers[i]};
      const at::Tensor alone = decode(toy_.models(), method, prompts(toy_, one, guided),
                                      requests(one, scale(), temperature), toy_.grid());
      EXPECT_TRUE(at::equal(alone[0], together[static_cast<std::int64_t>(i)])) << "image " << i;
    }
    if (!top) continue;
    const Models target_alone{&toy_.target, nullptr};
    EXPECT_TRUE(at::equal(
        together,
        decode(target_alone, Method{}, prompts(toy_, kPaddedNumbers, guided, false), samples, toy_.grid())));
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, PaddingTest,
                         ::testing::Combine(::testing::Values(1.0F, 2.5F), ::testing::Bool()));

}  // namespace
}  // namespace lamplighter::test

#include <ATen/Parallel.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <ostream>

#include "lamplighter/error.h"
#include "tests/decode/fresh_caches.h"
#include "tests/decode/toy.h"
#include "tests/decode/toy_methods.h"
#include "tests/error_of.h"

// What the decode loop keeps bit by bit: tokens at temperature 0, images in batches, caches, relaxed rules
// that relax nothing.
namespace lamplighter::test {
namespace {

struct LoopCase {
  std::string name;
  Method method;
  c10::ScalarType dtype = at::kFloat;
  int row_end_columns = 0;  // of a grid whose rows end with a forced token; 0: a grid without
  bool model = false;       // a small target drafts
};

void PrintTo(const LoopCase& test, std::ostream* out) {
  *out << test.name;
}

std::string name_of(const ::testing::TestParamInfo<LoopCase>& test) {
  const int columns = test.param.row_end_columns;
  return (test.param.model ? "model_" : "") + test.param.name +
         (columns > 0 ? "_rows_of_" + std::to_string(columns) : "") +
         (test.param.dtype == at::kFloat ? "_fp32" : "_bf16");
}

SyntheticShape loop_shape(int row_end_columns = 0) {
  SyntheticShape shape;
  shape.vocabulary = 12;
  shape.rows = row_end_columns == 1 ? 9 : 3;
  shape.columns = row_end_columns > 0 ? row_end_columns : 5;
  shape.row_ends = row_end_columns > 0;
  shape.weight_scale = 1.5;
  return shape;
}

SamplingOptions guided(float temperature) {
  SamplingOptions sampling;
  sampling.cfg_scale = 2.5F;
  sampling.temperature = temperature;
  sampling.top_k = 9;
  sampling.top_p = 0.97F;
  return sampling;
}

// Image `number` is sampled with this seed, whoever it is sampled with.
DecodeRequest request(std::int64_t number, const SamplingOptions& sampling) {
  return {sampling, 1000 + static_cast<std::uint64_t>(number)};
}

std::vector<DecodeRequest> requests(const std::vector<std::int64_t>& numbers,
                                    const SamplingOptions& sampling) {
  std::vector<DecodeRequest> result;
  for (const std::int64_t number : numbers) result.push_back(request(number, sampling));
  return result;
}

at::Tensor run(const Toy& toy, const Method& method, const std::vector<std::int64_t>& numbers,
               const std::vector<DecodeRequest>& samples, const OnCycle& on_cycle = {}) {
  const Prompts prompts = toy.prompts(numbers, is_guided(samples));
  return decode(toy.models(), method, prompts, samples, toy.grid(), on_cycle);
}

const std::vector<std::int64_t> kNumbers{0, 1, 2, 3, 4, 5};

std::vector<LoopCase> lossless_cases(bool greedy) {
  Method conditional = static_method(bushy_tree(), "exact", greedy);
  conditional.conditional = true;
  const std::vector<std::pair<std::string, Method>> methods{
      {"chain_1", static_method(preset_tree("chain-1"), "exact", greedy)},
      {"chain_4", static_method(preset_tree("chain-4"), "exact", greedy)},
      // Deeper than the image is long.
      {"chain_20", static_method(preset_tree("chain-20"), "exact", greedy)},
      {"bushy", static_method(bushy_tree(), "exact", greedy)},
      {"lantern_26", static_method(preset_tree("lantern-26"), "exact", greedy)},
      {"lantern_58", static_method(preset_tree("lantern-58"), "exact", greedy)},
      {"traversal", static_method(bushy_tree(), "traversal", greedy)},
      {"block", static_method(preset_tree("chain-3"), "block", greedy)},
      {"top_children", static_method(bushy_tree(), "exact", true)},
      {"conditional_drafts", conditional},
      {"dynamic_2_3_7", dynamic_method(2, 3, 7)},
      {"dynamic_6_10_58", dynamic_method(6, 10, 58)},
      {"dynamic_adapting", adapting(dynamic_method(6, 10, 58))}};
  std::vector<LoopCase> cases;
  for (const auto& [name, method] : methods) {
    for (const auto dtype : {at::kFloat, at::kBFloat16}) cases.push_back({name, method, dtype});
    for (const int columns : {1, 2, 5}) cases.push_back({name, method, at::kFloat, columns});
    for (const auto dtype : {at::kFloat, at::kBFloat16}) cases.push_back({name, method, dtype, 0, true});
    cases.push_back({name, method, at::kFloat, 2, true});
  }
  return cases;
}

class LoopTest : public ::testing::TestWithParam<LoopCase> {
 protected:
  void SetUp() override { at::set_num_threads(1); }
  const Method& method() const { return GetParam().method; }
  const Toy toy_ = make_toy(loop_shape(GetParam().row_end_columns), GetParam().model, GetParam().dtype);
};

class Greedy : public LoopTest {};

TEST_P(Greedy, TokensAreThoseOfAutoregression) {
  const std::vector<DecodeRequest> samples = requests(kNumbers, guided(0));
  const at::Tensor expected = run(toy_, {}, kNumbers, samples);
  std::int64_t passes = 0;
  const at::Tensor codes =
      run(toy_, method(), kNumbers, samples, [&](const Report&) { return ++passes > 0; });
  EXPECT_TRUE(at::equal(codes, expected)) << codes << expected;
  EXPECT_LT(passes, toy_.grid().tokens());
}

TEST_P(Greedy, PartlyGuidedTokensAreThoseOfAutoregression) {
  for (const std::int64_t interval : {0, 3, 7}) {
    SamplingOptions sampling = guided(0);
    std::vector<DecodeRequest> samples;
    for (const std::int64_t number : kNumbers) {
      sampling.cfg_interval = number % 3 == 2 ? -1 : interval + number;
      samples.push_back(request(number, sampling));
    }
    EXPECT_TRUE(at::equal(run(toy_, method(), kNumbers, samples), run(toy_, {}, kNumbers, samples)))
        << interval;
  }
}

TEST_P(Greedy, DecayingGuidanceGivesTokensOfAutoregression) {
  SyntheticShape shape = loop_shape(GetParam().row_end_columns);
  shape.schedule = {"decay", 1.2, 3, false};
  const Toy toy = make_toy(shape, GetParam().model, GetParam().dtype);
  const std::vector<DecodeRequest> samples = requests(kNumbers, guided(0));
  const at::Tensor expected = run(toy, {}, kNumbers, samples);
  EXPECT_TRUE(at::equal(run(toy, method(), kNumbers, samples), expected));
  EXPECT_FALSE(at::equal(run(toy_, {}, kNumbers, samples), expected)) << "the schedule does not matter";
}

INSTANTIATE_TEST_SUITE_P(Methods, Greedy, ::testing::ValuesIn(lossless_cases(true)), name_of);

std::vector<LoopCase> all_cases() {
  std::vector<LoopCase> cases = lossless_cases(false);
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    cases.push_back({"autoregression", {}, dtype});
    if (dtype == at::kFloat) cases.push_back({"autoregression", {}, dtype, 2});
    cases.push_back({"lantern",
                     relaxed_method(bushy_tree(), "lantern", 0.2F, 3, next_codes(loop_shape().vocabulary)),
                     dtype});
    cases.push_back({"lanternpp",
                     relaxed_method(bushy_tree(), "lantern++", 2, 3, next_codes(loop_shape().vocabulary)),
                     dtype});
  }
  return cases;
}

class Batches : public LoopTest {};

TEST_P(Batches, AnImageDoesNotDependOnItsBatch) {
  for (const float temperature : {0.9F, 0.0F}) {
    const SamplingOptions sampling = guided(temperature);
    const std::vector<std::int64_t> numbers{0, 1, 2, 3};
    const at::Tensor together = run(toy_, method(), numbers, requests(numbers, sampling));
    for (const std::int64_t number : numbers) {
      const at::Tensor alone = run(toy_, method(), {number}, {request(number, sampling)});
      EXPECT_TRUE(at::equal(together.narrow(0, number, 1), alone)) << "image " << number;
    }
  }
}

TEST_P(Batches, CachesAreThoseOfAFreshRun) {
  const std::vector<DecodeRequest> samples = requests(kNumbers, guided(0.9F));
  const Prompts prompts = toy_.prompts(kNumbers, true);
  FreshCaches fresh(toy_, method(), prompts);
  const at::Tensor codes = decode_by_parts(toy_.models(), method(), prompts, samples, toy_.grid(),
                                           [&](DecodeState& state, std::int64_t cycle) {
                                             EXPECT_TRUE(fresh.target_matches(state)) << "cycle " << cycle;
                                             if (drafts(method())) {
                                               EXPECT_TRUE(fresh.drafter_matches(state)) << "cycle " << cycle;
                                             }
                                           });
  EXPECT_TRUE(at::equal(codes, run(toy_, method(), kNumbers, samples)));
}

INSTANTIATE_TEST_SUITE_P(Methods, Batches, ::testing::ValuesIn(all_cases()), name_of);

class Loop : public ::testing::Test {
 protected:
  void SetUp() override { at::set_num_threads(1); }
  const Toy toy_{loop_shape()};
};

TEST_F(Loop, RulesThatRelaxNothingDecideAsTheExactRule) {
  const at::Tensor table = next_codes(loop_shape().vocabulary);
  for (const float temperature : {0.9F, 0.0F}) {
    const std::vector<DecodeRequest> samples = requests(kNumbers, guided(temperature));
    const auto tokens = [&](const Method& method) { return run(toy_, method, kNumbers, samples); };
    const at::Tensor exact = tokens(static_method(bushy_tree()));
    EXPECT_TRUE(at::equal(tokens(relaxed_method(bushy_tree(), "lantern", 0, 3, table)), exact)) << "delta 0";
    EXPECT_TRUE(at::equal(tokens(relaxed_method(bushy_tree(), "lantern++", 1, 3, table)), exact))
        << "lambda 1";
    EXPECT_TRUE(at::equal(tokens(relaxed_method(bushy_tree(), "lantern", 0.3F, 0, table)), exact)) << "k 0";
    EXPECT_TRUE(at::equal(tokens(relaxed_method(bushy_tree(), "lantern++", 4, 0, table)), exact)) << "k 0";
    // What the relaxed rules do when they may.
    EXPECT_FALSE(at::equal(tokens(relaxed_method(bushy_tree(), "lantern", 0.9F, 3, table)), exact));
    EXPECT_FALSE(at::equal(tokens(relaxed_method(bushy_tree(), "lantern++", 9, 3, table)), exact));
  }
}

TEST_F(Loop, ImagesOfABatchFinishInDifferentCycles) {
  const Method method = static_method(bushy_tree());
  std::vector<std::int64_t> numbers(16);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<std::int64_t>(i);
  const std::vector<DecodeRequest> samples = requests(numbers, guided(0.9F));
  std::vector<std::int64_t> finished(numbers.size(), 0);
  std::int64_t cycles = 0;
  const at::Tensor codes = run(toy_, method, numbers, samples, [&](const Report& report) {
    ++cycles;
    for (const ImageReport& image : report.images) {
      std::int64_t& end = finished[static_cast<std::size_t>(image.image)];
      EXPECT_TRUE(end == 0 || image.codes.empty());
      if (end == 0 && image.steps == toy_.grid().tokens()) end = cycles;
    }
    return true;
  });
  const auto [first, last] = std::minmax_element(finished.begin(), finished.end());
  EXPECT_GE(*last - *first, 2);
}

TEST_F(Loop, GuidanceTemperatureAndSeedsBelongToTheImage) {
  SamplingOptions hot = guided(1.3F), greedy = guided(0), plain = guided(0.8F);
  plain.cfg_scale = 1;
  plain.top_k = 0;
  const std::vector<SamplingOptions> kinds{hot, greedy, plain, guided(0.9F)};
  for (const Method& method : {Method{}, static_method(bushy_tree()), dynamic_method(2, 3, 7)}) {
    std::vector<DecodeRequest> samples;
    for (std::int64_t i = 0; i < 4; ++i) samples.push_back(request(i, kinds[static_cast<std::size_t>(i)]));
    const at::Tensor together = run(toy_, method, {0, 1, 2, 3}, samples);
    for (std::int64_t i = 0; i < 4; ++i) {
      const at::Tensor alone = run(toy_, method, {i}, {samples[static_cast<std::size_t>(i)]});
      EXPECT_TRUE(at::equal(together.narrow(0, i, 1), alone)) << "image " << i;
    }
  }
}

TEST_F(Loop, ADrafterOfNaNsOnlyCostsSpeed) {
  SyntheticShape broken = loop_shape();
  broken.weight_scale = std::numeric_limits<double>::quiet_NaN();
  const Toy damaged(broken);
  const std::vector<DecodeRequest> samples = requests(kNumbers, guided(0));
  const Prompts prompts = toy_.prompts(kNumbers, true);
  const at::Tensor expected = decode(toy_.models(), {}, prompts, samples, toy_.grid());
  for (const Method& method : {static_method(bushy_tree()), dynamic_method(2, 3, 7)}) {
    const at::Tensor codes = decode({&toy_.target, &damaged.drafter}, method, prompts, samples, toy_.grid());
    EXPECT_TRUE(at::equal(codes, expected));
  }
}

// What the target drafts for itself it takes: D + 1 tokens a pass.
TEST_F(Loop, ATargetTakesAllThatItDraftsForItself) {
  constexpr std::int64_t kDepth = 4;
  for (const int columns : {0, 5}) {
    const Toy own(loop_shape(columns), loop_shape(columns));
    for (const float temperature : {0.9F, 0.0F}) {
      SamplingOptions sampling = guided(temperature);
      sampling.cfg_interval = 6;
      const std::vector<DecodeRequest> samples = requests({0, 1, 2}, sampling);
      const std::int64_t total = own.grid().tokens();
      std::int64_t cycles = 0;
      Prompts prompts = own.prompts({0, 1, 2}, true);
      prompts.ids = at::Tensor();  // the drafter reads what the target reads
      const auto inspect = [&](const Report& report) {
        ++cycles;
        for (const ImageReport& image : report.images) {
          // Drafts stop at the end of a row, but for the last one.
          const std::int64_t before = image.steps - static_cast<std::int64_t>(image.codes.size());
          const std::int64_t row = columns > 0 ? (total - before) % columns : kDepth;
          EXPECT_EQ(image.accepted, before + row < total ? std::min(kDepth, row) : kDepth)
              << "image " << image.image << " with rows of " << columns << " after " << before << " at "
              << temperature;
        }
        return true;
      };
      decode(own.models(), static_method(preset_tree("chain-4"), "exact", temperature <= 0), prompts, samples,
             own.grid(), inspect);
      if (columns == 0) {
        EXPECT_EQ(cycles, (total - 1 + kDepth) / (kDepth + 1));
      }
    }
  }
}

TEST_F(Loop, ATargetOfNaNsIsReported) {
  SyntheticShape broken = loop_shape();
  broken.weight_scale = std::numeric_limits<double>::quiet_NaN();
  const Toy damaged(broken);
  for (const Method& method :
       {Method{}, static_method(bushy_tree()), dynamic_method(2, 3, 7), zipar_method(2)}) {
    for (const float temperature : {0.0F, 0.9F}) {
      const auto samples = requests({0, 1}, guided(temperature));
      EXPECT_THAT(error_of(ExitCode::bundle,
                           [&] {
                             run(damaged, method, {0, 1}, samples);
                           }),
                  ::testing::HasSubstr("NaN"));
    }
  }
}

TEST_F(Loop, StopsWhenTheCallbackReturnsFalse) {
  std::int64_t cycles = 0;
  const auto two_cycles = [&](const Report&) { return ++cycles < 2; };
  const auto action = [&] {
    run(toy_, static_method(bushy_tree()), {0}, requests({0}, guided(1)), two_cycles);
  };
  EXPECT_NE(error_of(ExitCode::interrupted, action), "");
  EXPECT_EQ(cycles, 2);
}

}  // namespace
}  // namespace lamplighter::test

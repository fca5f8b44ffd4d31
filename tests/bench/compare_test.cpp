#include "bench/report/compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lamplighter/error.h"
#include "tests/error_of.h"

namespace lamplighter {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Json sample(const std::string& method, int image, double decode_ms, int passes, int repeat = 0) {
  return {
      {"method", method},       {"batch_size", 1},         {"repeat", repeat},
      {"batch", image},         {"image", image},          {"seed", static_cast<std::uint64_t>(42 + image)},
      {"tokens", 101},          {"target_passes", passes}, {"prefill_ms", 1.0},
      {"decode_ms", decode_ms}, {"stage_ms", {}}};
}

// Four images with ar and eagle. `faster` divides eagle's times; `passes` are eagle's passes for the first
// image.
Json run(double faster = 1, int passes = 50) {
  Json samples = Json::array();
  for (int image = 0; image < 4; ++image) {
    samples.push_back(sample("ar", image, 100.0 + image, 101));
    samples.push_back(sample("eagle", image, (60.0 + 10 * image) / faster, passes + 7 * image));
  }
  return {{"format", "lamplighter-bench"},
          {"format_version", 1},
          {"version", "0.1.0"},
          {"dtype", "bf16"},
          {"count_prompt", true},
          {"environment", {{"cpu", "AMD"}, {"load_before", 0.1}}},
          {"methods", Json::array()},
          {"samples", samples}};
}

Comparison compare(const Json& before, const Json& after) {
  return compare_runs(before, "a.json", after, "b.json");
}

TEST(Compare, EqualRunsHaveNotChanged) {
  const Comparison same = compare(run(), run());
  ASSERT_EQ(same.methods.size(), 2U);
  for (const MethodChange& one : same.methods) {
    for (const Change* change : {&one.step_compression, &one.speedup, &one.token_ms}) {
      EXPECT_TRUE(change->paired);
      EXPECT_FALSE(change->is_beyond_noise());
      EXPECT_EQ(change->ratio.mean, 1);
    }
  }
  EXPECT_TRUE(same.differences.empty() && same.only_before.empty() && same.only_after.empty());
}

// Images differ much more than the runs, so only pairing by image reveals the change.
TEST(Compare, ImagesOfBothRunsArePaired) {
  const MethodChange eagle = compare(run(), run(1.05)).methods.at(1);
  EXPECT_EQ(eagle.method, "eagle");
  EXPECT_TRUE(eagle.token_ms.is_beyond_noise());
  EXPECT_NEAR(eagle.token_ms.ratio.mean, 1 / 1.05, 1e-9);
  EXPECT_TRUE(eagle.speedup.is_beyond_noise());
  EXPECT_GT(eagle.speedup.ratio.low, 1.04);
  EXPECT_FALSE(eagle.step_compression.is_beyond_noise());

  Json others = run(1.05);
  for (Json& one : others["samples"]) one["seed"] = one["seed"].get<std::uint64_t>() + 100;
  const MethodChange unpaired = compare(run(), others).methods.at(1);
  EXPECT_FALSE(unpaired.token_ms.paired);
  EXPECT_NEAR(unpaired.token_ms.ratio.mean, 1 / 1.05, 1e-9);
  EXPECT_FALSE(unpaired.token_ms.is_beyond_noise());
  EXPECT_LT(unpaired.token_ms.ratio.low, 1 / 1.05);
}

TEST(Compare, FewerPassesAreMoreTokensAPass) {
  const MethodChange eagle = compare(run(), run(1, 40)).methods.at(1);
  EXPECT_TRUE(eagle.step_compression.is_beyond_noise());
  EXPECT_GT(eagle.step_compression.ratio.low, 1);
  EXPECT_FALSE(eagle.token_ms.is_beyond_noise());
}

// Repeats of one image show noise of the machine, but none of S.
TEST(Compare, OneImageHasItsRepeats) {
  const auto repeated = [](double ms) {
    Json json = run();
    json["samples"] = Json::array();
    for (int repeat = 0; repeat < 5; ++repeat)
      json["samples"].push_back(sample("eagle", 0, ms + repeat, 50, repeat));
    return json;
  };
  const MethodChange eagle = compare(repeated(100), repeated(200)).methods.at(0);
  EXPECT_TRUE(eagle.token_ms.is_beyond_noise());
  EXPECT_EQ(eagle.token_ms.before.count, 5U);
  EXPECT_EQ(eagle.step_compression.before.count, 1U);
  EXPECT_FALSE(eagle.step_compression.is_beyond_noise());
  EXPECT_EQ(eagle.speedup.before.count, 0U);  // ar was not generated
}

TEST(Compare, ListsRowsOfOneRunOnly) {
  Json before = run(), after = run();
  for (Json& one : after["samples"]) {
    if (one["method"] == "eagle") one["method"] = "ngram";
  }
  after["samples"].push_back(sample("ar", 0, 100, 101));
  after["samples"].back()["batch_size"] = 2;
  after["dtype"] = "fp32";
  after["environment"] = {{"cpu", "Intel"}, {"load_before", 3.0}, {"threads", 2}};
  const Comparison comparison = compare(before, after);
  EXPECT_THAT(comparison.only_before, ElementsAre("eagle"));
  EXPECT_THAT(comparison.only_after, ElementsAre("ngram", "ar, 2 together"));
  std::vector<std::string> keys;
  for (const Difference& one : comparison.differences) keys.push_back(one.key);
  EXPECT_THAT(keys, ElementsAre("dtype", "environment.cpu", "environment.threads"));
  EXPECT_EQ(comparison.differences.back().before, nullptr);
  const Json json = to_json(comparison);
  EXPECT_EQ(json["differences"][0], Json({{"key", "dtype"}, {"before", "bf16"}, {"after", "fp32"}}));
  EXPECT_EQ(json["methods"][0]["method"], "ar");
}

TEST(Compare, ForeignAndDamagedFilesAreRefused) {
  const auto changed = [](const std::string& pointer, const Json& value) {
    Json json = run();
    json[Json::json_pointer(pointer)] = value;
    return json;
  };
  Json synthetic = run();
  synthetic["synthetic"] = true;
  for (const auto& [json, text] :
       std::vector<std::pair<Json, std::string>>{{Json::array(), "object"},
                                                 {Json::object(), "not a file of bench"},
                                                 {{{"format", "lamplighter-table"}}, "not a file of bench"},
                                                 {synthetic, "--synthetic"},
                                                 {changed("/format_version", 2), "format_version"},
                                                 {changed("/samples", Json::array()), "no samples"},
                                                 {changed("/samples/3", 7), "samples[3]"},
                                                 {changed("/samples/3/decode_ms", 0), "samples[3].decode_ms"},
                                                 {changed("/samples/3/tokens", "many"), "samples[3].tokens"},
                                                 {changed("/samples/3/seed", nullptr), "samples[3].seed"}}) {
    EXPECT_THAT(error_of(ExitCode::input, [&] { compare(run(), json); }),
                AllOf(HasSubstr("b.json"), HasSubstr(text)));
  }
}

}  // namespace
}  // namespace lamplighter

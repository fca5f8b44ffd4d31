#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bundle/draft_kinds.h"
#include "tests/bundle/manifest/toy_manifest.h"
#include "tests/error_of.h"

namespace lamplighter {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(ManifestTest, ReadsEveryField) {
  const Manifest manifest = read();
  EXPECT_EQ(manifest.name, "toy");
  EXPECT_EQ(manifest.files.at("target.pt").bytes, 6U);
  EXPECT_EQ(manifest.modules.at("image_decoder").dtype, "float16");
  EXPECT_EQ(manifest.prompt->length, 24);
  EXPECT_EQ(manifest.sampling.top_k, 100);
  EXPECT_EQ(manifest.cache.max_length, 280);
  EXPECT_EQ(find_grid(manifest, 0, 0).columns, 16);
  EXPECT_EQ(find_grid(manifest, 64, 0).columns, 8);
  EXPECT_THAT(missing_for_generation(manifest), ElementsAre("modules.text_encoder", "tokenizer"));
}

TEST_F(ManifestTest, AnUnknownGridIsAUsageErrorThatListsTheGrids) {
  const Manifest manifest = read();
  EXPECT_THAT(error_of(ExitCode::usage, [&] { find_grid(manifest, 100, 100); }),
              HasSubstr("128x128, 64x128"));
}

TEST_F(ManifestTest, RejectsWhatDoesNotFitTheSchema) {
  EXPECT_THAT(error([](Json& j) { j["schema_version"] = 2; }), HasSubstr("schema_version"));
  EXPECT_THAT(error([](Json& j) { j["colour"] = 1; }), HasSubstr("colour"));
  EXPECT_THAT(error([](Json& j) { j["cache"]["layer"] = 1; }), HasSubstr("layer"));
  EXPECT_THAT(error([](Json& j) { j.erase("name"); }), HasSubstr("name"));
  EXPECT_THAT(error([](Json& j) { j["grids"][0]["rows"] = "16"; }), HasSubstr("rows"));
  EXPECT_THAT(error([](Json& j) { j["cache"]["layers"] = 0; }), HasSubstr("layers"));
  EXPECT_THAT(error([](Json& j) { j["modules"]["renderer"] = j["modules"]["target"]; }),
              HasSubstr("renderer"));
  EXPECT_THAT(error([](Json& j) { j["sampling"]["top_p"] = 1.5; }), HasSubstr("top_p"));
  EXPECT_THAT(error([](Json& j) { j["prompt"]["align"] = "middle"; }), HasSubstr("align"));
}

TEST_F(ManifestTest, ReadsTheWordsThatABundleKnows) {
  const Json words = Json::parse(R"({"kinds": {"subject": {"boat": ["boat", "sail boat"], "none": []},
                                               "colour": {"red": ["red"]}},
                                     "subject": "subject", "other": ["a"], "example": "a red boat"})");
  const Manifest manifest = read([&](Json& j) { j["prompt"]["vocabulary"] = words; });
  ASSERT_TRUE(manifest.prompt->vocabulary);
  const VocabularyEntry& vocabulary = *manifest.prompt->vocabulary;
  ASSERT_EQ(vocabulary.kinds.size(), 2U);
  EXPECT_EQ(vocabulary.kinds[1].name, "colour");
  EXPECT_THAT(vocabulary.kinds[0].values[0].phrases, ElementsAre("boat", "sail boat"));
  EXPECT_EQ(vocabulary.kinds[0].values[1].name, "none");
  EXPECT_EQ(vocabulary.example, "a red boat");
  const auto change = [&](const std::function<void(Json&)>& spoil) {
    return error([&](Json& j) { spoil(j["prompt"]["vocabulary"] = words); });
  };
  EXPECT_THAT(change([](Json& w) { w["subject"] = "verb"; }), HasSubstr("prompt.vocabulary.subject"));
  EXPECT_THAT(change([](Json& w) { w["kinds"]["colour"]["red"] = 1; }), HasSubstr("kinds.colour.red"));
  EXPECT_THAT(change([](Json& w) { w["kinds"]["colour"] = "red"; }), HasSubstr("kinds.colour"));
  EXPECT_THAT(change([](Json& w) { w.erase("example"); }), HasSubstr("example is missing"));
}

TEST_F(ManifestTest, PromptsOfTokens) {
  const Json tokens = {{"kind", "tokens"},    {"length", 24},  {"align", "start"},
                       {"prefix", {1}},       {"suffix", {2}}, {"text", "user: {prompt}"},
                       {"unconditional", {1}}};
  const auto with = [&](const Json& more) {
    return [&tokens, more](Json& json) {
      json["prompt"] = tokens;
      json["prompt"].update(more);
    };
  };
  const Manifest plain = read(with(Json::object()));
  EXPECT_FALSE(plain.prompt->strip || plain.prompt->empty_text || plain.prompt->unconditional_pad);
  const Manifest padded = read(with({{"strip", true}, {"empty_text", "user:"}, {"unconditional_pad", 511}}));
  EXPECT_TRUE(padded.prompt->strip);
  EXPECT_EQ(padded.prompt->empty_text, "user:");
  EXPECT_EQ(padded.prompt->unconditional_pad, 511);
  EXPECT_THAT(error(with({{"unconditional_pad", 512}})),
              HasSubstr("prompt.unconditional_pad: got id 512, expected 0..511"));
  const Json negative = {
      {"negative_text", "no {prompt}"}, {"negative_prompt", "fog"}, {"unconditional", Json::array()}};
  EXPECT_FALSE(plain.prompt->negative_text);
  const Manifest steered = read(with(negative));
  EXPECT_EQ(steered.prompt->negative_text, "no {prompt}");
  EXPECT_EQ(steered.prompt->negative_prompt, "fog");
  EXPECT_THAT(error(with({{"negative_text", "no {prompt}"}})),
              HasSubstr("prompt.negative_prompt is missing"));
  EXPECT_THAT(error(with({{"negative_text", "no"}, {"negative_prompt", ""}})),
              HasSubstr("prompt.negative_text: got \"no\", expected a text with {prompt}"));
  EXPECT_THAT(error(with({{"unconditional", Json::array()}})), HasSubstr("prompt.unconditional: got no ids"));
  EXPECT_THAT(error([&](Json& json) {
                with(negative)(json);
                json["prompt"]["unconditional_pad"] = 3;
              }),
              HasSubstr("got unconditional_pad and negative_text, expected one of them"));
  EXPECT_THAT(error(with({{"strip", 1}})), HasSubstr("prompt.strip: got 1"));
  EXPECT_THAT(error([](Json& j) { j["prompt"]["strip"] = true; }), HasSubstr("unknown field prompt.strip"));
}

TEST_F(ManifestTest, SchedulesOfGuidance) {
  const auto with = [](const Json& schedule) {
    return [schedule](Json& json) { json["sampling"]["schedule"] = schedule; };
  };
  EXPECT_EQ(read().schedule.kind, "constant");
  for (const char* kind : {"constant", "linear"}) EXPECT_EQ(read(with({{"kind", kind}})).schedule.kind, kind);
  const GuidanceSchedule plain = read(with({{"kind", "decay"}, {"floor", 4}})).schedule;
  EXPECT_EQ(plain.kind, "decay");
  EXPECT_EQ(plain.floor, 4);
  EXPECT_EQ(plain.share, 1);
  EXPECT_FALSE(plain.raise);
  const Json official = {{"kind", "decay"}, {"floor", 4.0}, {"share", 0.25}, {"raise", true}};
  EXPECT_EQ(read(with(official)).schedule.share, 0.25);
  EXPECT_TRUE(read(with(official)).schedule.raise);
  EXPECT_THAT(error(with({{"kind", "rising"}})), HasSubstr("sampling.schedule.kind"));
  EXPECT_THAT(error(with({{"kind", "decay"}})), HasSubstr("floor"));
  EXPECT_THAT(error(with({{"kind", "decay"}, {"floor", 0.5}})), HasSubstr("sampling.schedule.floor"));
  EXPECT_THAT(error(with({{"kind", "decay"}, {"floor", 4}, {"share", 0}})), HasSubstr("share"));
  for (const char* kind : {"constant", "linear"})
    EXPECT_THAT(error(with({{"kind", kind}, {"floor", 4}})),
                HasSubstr("unknown field sampling.schedule.floor"));
}

// Values that requests may not have are the manifest's fault, not a flag's.
TEST_F(ManifestTest, SamplingIsBounded) {
  const auto with = [](const char* key, const Json& value) {
    return [key, value](Json& json) { json["sampling"][key] = value; };
  };
  for (const char* key : {"cfg_scale", "temperature"}) {
    for (const double value : {-1.0, 1.1e6, 1e300})
      EXPECT_THAT(error(with(key, value)), HasSubstr(std::string("sampling.") + key)) << value;
    EXPECT_NO_THROW(read(with(key, 1e6)));
  }
  for (const double value : {0.0, 1e-60, 1.01})
    EXPECT_THAT(error(with("top_p", value)), HasSubstr("sampling.top_p"));
  for (const char* key : {"floor", "share"}) {
    Json schedule = {{"kind", "decay"}, {"floor", 4}};
    schedule[key] = 1e300;
    EXPECT_THAT(error(with("schedule", schedule)), HasSubstr(std::string("sampling.schedule.") + key));
  }
}

TEST_F(ManifestTest, IsBoundedBeforeItIsRead) {
  std::filesystem::create_directories(directory_);
  write("manifest.json", "{}");
  std::filesystem::resize_file(directory_ / "manifest.json", (std::uintmax_t{16} << 20) + 1);
  EXPECT_THAT(error_of(ExitCode::bundle, [&] { read_manifest(directory_.string()); }),
              HasSubstr("16777217 bytes, expected at most 16777216"));
}

TEST_F(ManifestTest, ContinuousTokens) {
  const auto change = [](Json& json) {
    for (const char* key : {"cache", "sampling"}) json.erase(key);
    json["tokens"] = {{"kind", "continuous"}, {"channels", 16}};
    json["grids"].erase(1);
    json["diffusion"] = {{"steps", 25}, {"respacing", "25"}};
    json["prompt"] = {{"kind", "class"}, {"length", 1}, {"align", "end"}, {"classes", 10}};
    json["sampling"] = {{"cfg_scale", 3.0}, {"temperature", 1.0}, {"schedule", {{"kind", "linear"}}}};
    json["target"] = {{"hidden", 64}};
    json["decoder"] = {{"downsample", 8}};
    json["drafters"]["small"] = {{"file", "target.pt"}, {"dtype", "float32"}, {"kind", "continuous"}};
  };
  const Manifest manifest = read(change);
  EXPECT_TRUE(manifest.is_continuous());
  EXPECT_EQ(manifest.tokens.channels, 16);
  EXPECT_EQ(manifest.diffusion.steps, 25);
  EXPECT_EQ(manifest.schedule.kind, "linear");
  EXPECT_EQ(draft_kind(manifest.drafters.at("small")).kind, DraftKind::continuous);
  EXPECT_TRUE(missing_for_generation(manifest).empty());
  const auto refused = [&](const std::function<void(Json&)>& more) {
    return error([&](Json& json) {
      change(json);
      more(json);
    });
  };
  EXPECT_THAT(refused([](Json& j) { j.erase("diffusion"); }), HasSubstr("diffusion"));
  EXPECT_THAT(refused([](Json& j) { j["tokens"]["channels"] = 0; }), HasSubstr("tokens.channels"));
  EXPECT_THAT(refused([](Json& j) { j["tokens"]["kind"] = "words"; }), HasSubstr("tokens.kind"));
  EXPECT_THAT(refused([](Json& j) { j["target"]["head"] = 5; }), HasSubstr("unknown field target.head"));
  EXPECT_THAT(refused([](Json& j) { j["guidance"]["schedule"] = "linear"; }),
              HasSubstr("unknown field guidance"));
  EXPECT_THAT(refused([](Json& j) {
                j["prompt"] = {{"kind", "text_features"}, {"length", 2}, {"align", "end"}, {"features", 4}};
              }),
              HasSubstr("prompt.kind"));
  EXPECT_THAT(refused([](Json& j) { j["grids"][0]["row_end"] = {3}; }), HasSubstr("expected none"));
  EXPECT_THAT(refused([](Json& j) {
                j["grids"].push_back(j["grids"][0]);
                j["grids"].back()["rows"] = 1;
              }),
              HasSubstr(" tokens, expected "));
  EXPECT_THAT(refused([](Json& j) {
                j["cache"] = {{"layers", 2}, {"kv_heads", 4}, {"head_dim", 16}, {"max_length", 280}};
              }),
              HasSubstr("cache: got one"));
  EXPECT_THAT(refused([](Json& j) {
                j["drafters"]["small"]["kind"] = "medusa", j["drafters"]["small"]["heads"] = 2;
              }),
              HasSubstr("drafters.small.kind medusa disagrees"));
  EXPECT_FALSE(read().is_continuous());
}

TEST_F(ManifestTest, NumbersThatNoModelHas) {
  EXPECT_THAT(error([](Json& json) { json["cache"]["layers"] = 1'000'000'000'000; }),
              HasSubstr("cache.layers: got 1000000000000"));
  EXPECT_THAT(error([](Json& json) { json["tokens"]["first_image_id"] = INT64_MAX - 10; }),
              HasSubstr("tokens.first_image_id"));
  EXPECT_THAT(error([](Json& json) { json["target"]["hidden"] = INT64_MAX; }), HasSubstr("target.hidden"));
  EXPECT_THAT(error([](Json& json) { json["sampling"]["cfg_scale"] = -1; }), HasSubstr("sampling.cfg_scale"));
}

}  // namespace
}  // namespace lamplighter

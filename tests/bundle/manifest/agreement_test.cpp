#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bundle/draft_kinds.h"
#include "tests/bundle/manifest/toy_manifest.h"

namespace lamplighter {
namespace {

using ::testing::HasSubstr;

TEST_F(ManifestTest, PartsThatDisagreeAreNamedWithBothNumbers) {
  EXPECT_THAT(error([](Json& j) { j["target"]["head"] = 256; }),
              HasSubstr("256 disagrees with tokens.codebook_size 512"));
  EXPECT_THAT(error([](Json& j) { j["decoder"]["codebook_size"] = 1024; }), HasSubstr("1024 disagrees"));
  EXPECT_THAT(error([](Json& j) { j["tokens"]["vocabulary"] = 500; }), HasSubstr("vocabulary 500"));
  EXPECT_THAT(error([](Json& j) { j["decoder"]["downsample"] = 16; }), HasSubstr("downsample 16"));
  EXPECT_THAT(error([](Json& j) { j["cache"]["max_length"] = 279; }), HasSubstr("needs 280 positions"));
  EXPECT_THAT(error([](Json& j) { j.erase("cache"); }), HasSubstr("cache is missing"));
}

TEST_F(ManifestTest, TokensAreSquaresWithoutAnImageDecoder) {
  const auto columns = [](int count) {
    return [count](Json& j) {
      j["modules"].erase("image_decoder");
      j["grids"][1]["columns"] = count;
    };
  };
  EXPECT_EQ(read(columns(8)).grids[1].columns, 8);
  for (const int count : {1, 4, 7}) {
    const std::string grid = "grids[1] of 16 x " + std::to_string(count);
    EXPECT_THAT(error(columns(count)), HasSubstr(grid + " tokens disagrees with 64 x 128 pixels, expected"));
  }
}

TEST_F(ManifestTest, AnImageEncoderIsOptional) {
  const auto add = [](Json& j) {
    j["modules"]["image_encoder"] = {{"file", "decoder.pt"}, {"dtype", "float32"}};
  };
  EXPECT_FALSE(read().has("image_encoder"));
  EXPECT_EQ(read(add).modules.at("image_encoder").dtype, "float32");
  EXPECT_THAT(error([&](Json& j) {
                add(j);
                j["modules"].erase("image_decoder");
                j.erase("decoder");
              }),
              HasSubstr("decoder is missing; a bundle with an image encoder needs it"));
}

TEST_F(ManifestTest, DraftersFitThePrompts) {
  const auto add = [](Json& j) {
    j["drafters"]["eagle"] = {{"file", "target.pt"}, {"dtype", "float32"}, {"layers", 1},   {"kv_heads", 4},
                              {"head_dim", 16},      {"max_length", 280},  {"prompt_id", 0}};
  };
  EXPECT_FALSE(read(add).drafters.at("eagle").padding);
  EXPECT_EQ(read(add).drafters.at("eagle").kind, "eagle");
  const auto kind = [&](const Json& value) {
    return [&add, value](Json& j) {
      add(j);
      j["drafters"]["eagle"]["kind"] = value;
    };
  };
  EXPECT_EQ(read(kind("other")).drafters.at("eagle").kind, "other");  // methods decide
  EXPECT_THAT(error(kind("medusa")), HasSubstr("drafters.eagle.heads is missing"));
  const auto heads = [](Json& j) {
    const Json file = j["drafters"]["eagle"]["file"], dtype = j["drafters"]["eagle"]["dtype"];
    j["drafters"]["eagle"] = {{"file", file}, {"dtype", dtype}, {"kind", "medusa"}, {"heads", 3}};
  };
  EXPECT_EQ(read([&](Json& j) {
              add(j);
              heads(j);
            })
                .drafters.at("eagle")
                .heads,
            3);
  EXPECT_THAT(error(kind(3)), HasSubstr("drafters.eagle.kind"));
  const auto padded = [&](Json& j) {
    add(j);
    j["drafters"]["eagle"]["padding"] = true;
  };
  EXPECT_TRUE(read(padded).drafters.at("eagle").padding);
  EXPECT_THAT(error([&](Json& j) {
                padded(j);
                j["prompt"]["align"] = "start";
              }),
              HasSubstr("drafters.eagle.padding"));
  EXPECT_THAT(error([&](Json& j) {
                add(j);
                j["drafters"]["eagle"].erase("prompt_id");
              }),
              HasSubstr("drafters.eagle.prompt_id is missing"));
  EXPECT_THAT(error([&](Json& j) {
                add(j);
                j["drafters"]["eagle"]["max_length"] = 278;
              }),
              HasSubstr("drafters.eagle.max_length 278"));
}

TEST_F(ManifestTest, ModelsThatDraftReadThePrompt) {
  const auto with = [](const Json& more) {
    return [more](Json& j) {
      Json& drafter = j["drafters"]["small"];
      drafter = {{"file", "target.pt"}, {"dtype", "float32"}, {"kind", "model"},  {"layers", 2},
                 {"kv_heads", 4},       {"head_dim", 16},     {"max_length", 280}};
      drafter.update(more);
    };
  };
  EXPECT_EQ(draft_kind(read(with(Json::object())).drafters.at("small")).kind, DraftKind::model);
  EXPECT_THAT(error(with({{"prompt_id", 0}})), HasSubstr("drafters.small: got prompt_id or padding"));
  EXPECT_THAT(error(with({{"padding", true}})), HasSubstr("drafters.small: got prompt_id or padding"));
  EXPECT_THAT(error(with({{"max_length", 279}})), HasSubstr("drafters.small.max_length 279 disagrees"));
}

TEST_F(ManifestTest, InnerLayersAreLayersOfTheTarget) {
  const auto with = [](const Json& layers) {
    return [layers](Json& j) {
      j["drafters"]["inner"] = {{"file", "target.pt"}, {"dtype", "float32"}, {"kind", "eagle-3"},
                                {"layers", 1},         {"kv_heads", 4},      {"head_dim", 16},
                                {"max_length", 280},   {"prompt_id", 0},     {"feature_layers", layers}};
    };
  };
  EXPECT_EQ(read(with({0})).drafters.at("inner").feature_layers.size(), 1u);
  EXPECT_THAT(error(with({-1, 0})), HasSubstr("drafters.inner.feature_layers: got -1"));
  EXPECT_THAT(error(with(Json::array())), HasSubstr("drafters.inner.feature_layers: got none"));
}

TEST_F(ManifestTest, KindsWithoutLayersAreKnown) {
  const auto with = [](const Json& more) {
    return [more](Json& j) {
      j["drafters"]["heads"] = {{"file", "target.pt"}, {"dtype", "float32"}, {"heads", 3}};
      j["drafters"]["heads"].update(more);
    };
  };
  EXPECT_THAT(error(with({{"kind", "Medusa"}})), HasSubstr("drafters.heads.kind: got \"Medusa\""));
  EXPECT_THAT(error(with(Json::object())), HasSubstr("drafters.heads.kind: got nothing"));
}

TEST_F(ManifestTest, IdsBeyondTheVocabularyNameTheirField) {
  for (const char* field : {"before", "row_end", "after"}) {
    EXPECT_THAT(error([field](Json& j) { j["grids"][0][field] = {100000}; }),
                HasSubstr(std::string(".") + field + ": got id 100000"));
  }
}

TEST_F(ManifestTest, PromptsFitTheTokenizer) {
  EXPECT_THAT(error([](Json& json) {
                json["files"]["t5"] = json["files"]["target.pt"];
                json["tokenizer"] = {{"kind", "t5"},   {"file", "t5"},      {"max_length", 25},
                                     {"pad", 0},       {"eos", 1},          {"unk", 2},
                                     {"extra_ids", 0}, {"cleaning", "none"}};
              }),
              HasSubstr("tokenizer.max_length 25 disagrees with prompt.length 24"));
}

}  // namespace
}  // namespace lamplighter

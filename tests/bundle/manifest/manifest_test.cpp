#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "base/json.h"
#include "bundle/modules/module.h"
#include "lamplighter/bundle.h"
#include "lamplighter/error.h"

namespace lamplighter {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kManifest = R"({
  "schema_version": 1, "name": "toy", "family": "llamagen-t2i",
  "exporter": {"version": "0.1.0", "torch": "2.11.0"}, "licence": "Apache-2.0", "source": "random weights",
  "files": {
    "target.pt": {"bytes": 6, "sha256": "8dc77b80e3fec43b3377fcc3b53f1b9e5ee5d78be42f2d1d8b0c67ad90d8ed6d"},
    "decoder.pt": {"bytes": 6, "sha256": "8dc77b80e3fec43b3377fcc3b53f1b9e5ee5d78be42f2d1d8b0c67ad90d8ed6d"}
  },
  "modules": {
    "target": {"file": "target.pt", "dtype": "float32"},
    "image_decoder": {"file": "decoder.pt", "dtype": "float16"}
  },
  "prompt": {"kind": "text_features", "length": 24, "align": "end", "features": 64},
  "tokens": {"vocabulary": 512, "first_image_id": 0, "codebook_size": 512},
  "grids": [{"width": 128, "height": 128, "rows": 16, "columns": 16},
            {"width": 64, "height": 128, "rows": 16, "columns": 8}],
  "sampling": {"cfg_scale": 3.0, "temperature": 1.0, "top_k": 100, "top_p": 1.0, "order": "ar"},
  "target": {"hidden": 64, "features": 64, "head": 512},
  "cache": {"layers": 2, "kv_heads": 4, "head_dim": 16, "max_length": 280},
  "decoder": {"codebook_size": 512, "downsample": 8}
})";

class ManifestTest : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = fs::temp_directory_path() / ("lamplighter_manifest_" + std::to_string(::getpid()));
    fs::create_directories(directory_);
  }
  void TearDown() override { fs::remove_all(directory_); }

  void write(const std::string& name, const std::string& text) {
    std::ofstream(directory_ / name, std::ios::binary) << text;
  }
  Manifest read(const std::function<void(Json&)>& change = {}) {
    Json json = Json::parse(kManifest);
    if (change) change(json);
    write("manifest.json", json.dump());
    return read_manifest(directory_.string());
  }
  // The message of the bundle error that the change leads to; checks that it is one line.
  std::string error(const std::function<void(Json&)>& change) {
    try {
      read(change);
    } catch (const Error& caught) {
      EXPECT_EQ(caught.code(), ExitCode::bundle);
      EXPECT_THAT(caught.what(), Not(HasSubstr("\n")));
      return caught.what();
    }
    return "no error";
  }

  fs::path directory_;
};

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
  const Json released = {{"kind", "decay"}, {"floor", 4.0}, {"share", 0.25}, {"raise", true}};
  EXPECT_EQ(read(with(released)).schedule.share, 0.25);
  EXPECT_TRUE(read(with(released)).schedule.raise);
  EXPECT_THAT(error(with({{"kind", "rising"}})), HasSubstr("sampling.schedule.kind"));
  EXPECT_THAT(error(with({{"kind", "decay"}})), HasSubstr("floor"));
  EXPECT_THAT(error(with({{"kind", "decay"}, {"floor", 0.5}})), HasSubstr("sampling.schedule.floor"));
  EXPECT_THAT(error(with({{"kind", "decay"}, {"floor", 4}, {"share", 0}})), HasSubstr("share"));
  for (const char* kind : {"constant", "linear"})
    EXPECT_THAT(error(with({{"kind", kind}, {"floor", 4}})),
                HasSubstr("unknown field sampling.schedule.floor"));
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
  EXPECT_TRUE(manifest.drafters.at("small").is_continuous());
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
  try {
    find_grid(manifest, 100, 100);
    FAIL();
  } catch (const Error& caught) {
    EXPECT_EQ(caught.code(), ExitCode::usage);
    EXPECT_THAT(caught.what(), HasSubstr("128x128, 64x128"));
  }
}

TEST_F(ManifestTest, RejectsWhatDoesNotFitTheSchema) {
  EXPECT_THAT(error([](Json& j) { j["schema_version"] = 2; }), HasSubstr("schema_version"));
  EXPECT_THAT(error([](Json& j) { j["colour"] = 1; }), HasSubstr("colour"));
  EXPECT_THAT(error([](Json& j) { j["cache"]["layer"] = 1; }), HasSubstr("layer"));
  EXPECT_THAT(error([](Json& j) { j.erase("name"); }), HasSubstr("name"));
  EXPECT_THAT(error([](Json& j) { j["grids"][0]["rows"] = "16"; }), HasSubstr("rows"));
  EXPECT_THAT(error([](Json& j) { j["cache"]["layers"] = 0; }), HasSubstr("layers"));
  EXPECT_THAT(error([](Json& j) { j["modules"]["painter"] = j["modules"]["target"]; }), HasSubstr("painter"));
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

TEST_F(ManifestTest, FilesStayInsideTheBundleAndAreListed) {
  EXPECT_THAT(error([](Json& j) { j["modules"]["target"]["file"] = "../target.pt"; }),
              HasSubstr("inside the bundle"));
  EXPECT_THAT(error([](Json& j) { j["modules"]["target"]["file"] = "/target.pt"; }),
              HasSubstr("inside the bundle"));
  EXPECT_THAT(error([](Json& j) { j["modules"]["target"]["file"] = "other.pt"; }),
              HasSubstr("\"files\" lists"));
  for (const char* name : {"../../etc/hostname", "/etc/hostname", "folder/file", "..", ""}) {
    EXPECT_THAT(error([&](Json& j) { j["files"][name] = j["files"]["target.pt"]; }),
                HasSubstr(std::string("files.") + name + ": no plain name"));
  }
}

TEST_F(ManifestTest, FilesAreNoLinksOutOfTheBundle) {
  const Manifest manifest = read();
  write("decoder.pt", "abcdef");
  fs::create_symlink("decoder.pt", directory_ / "target.pt");
  verify_files(manifest, false);
  const fs::path outside = directory_.string() + "_outside";
  std::ofstream(outside, std::ios::binary) << "abcdef";
  fs::remove(directory_ / "target.pt");
  fs::create_symlink(outside, directory_ / "target.pt");
  try {
    verify_files(manifest, false);
    ADD_FAILURE() << "accepted";
  } catch (const Error& caught) {
    EXPECT_EQ(caught.code(), ExitCode::bundle);
    EXPECT_THAT(caught.what(), HasSubstr("target.pt: it is a link out of the bundle's folder"));
  }
  fs::remove(outside);
}

TEST_F(ManifestTest, PartsThatDisagreeAreNamedWithBothNumbers) {
  EXPECT_THAT(error([](Json& j) { j["target"]["head"] = 256; }),
              HasSubstr("256 disagrees with tokens.codebook_size 512"));
  EXPECT_THAT(error([](Json& j) { j["decoder"]["codebook_size"] = 1024; }), HasSubstr("1024 disagrees"));
  EXPECT_THAT(error([](Json& j) { j["tokens"]["vocabulary"] = 500; }), HasSubstr("vocabulary 500"));
  EXPECT_THAT(error([](Json& j) { j["decoder"]["downsample"] = 16; }), HasSubstr("downsample 16"));
  EXPECT_THAT(error([](Json& j) { j["cache"]["max_length"] = 279; }), HasSubstr("needs 280 positions"));
  EXPECT_THAT(error([](Json& j) { j.erase("cache"); }), HasSubstr("cache is missing"));
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
  EXPECT_TRUE(read(with(Json::object())).drafters.at("small").is_model());
  EXPECT_THAT(error(with({{"prompt_id", 0}})), HasSubstr("drafters.small: got prompt_id or padding"));
  EXPECT_THAT(error(with({{"padding", true}})), HasSubstr("drafters.small: got prompt_id or padding"));
  EXPECT_THAT(error(with({{"max_length", 279}})), HasSubstr("drafters.small.max_length 279 disagrees"));
}

TEST_F(ManifestTest, VerifyFindsMissingShortAndChangedFiles) {
  const Manifest manifest = read([](Json& j) {
    // SHA-256 of "abcdef"
    for (const char* name : {"target.pt", "decoder.pt"}) {
      j["files"][name]["sha256"] = "bef57ec7f53a6d40beb640a780a639c83bc29ac8a9816f1fc6c5c6dcd93c4721";
    }
  });
  const auto verify = [&](bool checksums) -> std::string {
    try {
      verify_files(manifest, checksums);
      return "";
    } catch (const Error& caught) {
      EXPECT_EQ(caught.code(), ExitCode::bundle);
      return caught.what();
    }
  };
  write("decoder.pt", "abcdef");
  EXPECT_THAT(verify(true), HasSubstr("target.pt: No such file"));
  write("target.pt", "abcde");
  EXPECT_THAT(verify(false), HasSubstr("got 5 bytes, expected 6"));
  write("target.pt", "abcdeg");
  EXPECT_EQ(verify(false), "");
  EXPECT_THAT(verify(true), HasSubstr("SHA-256"));
  write("target.pt", "abcdef");
  EXPECT_EQ(verify(true), "");
}

TEST_F(ManifestTest, WhatIsNoTorchScriptArchiveIsToldInPlainWords) {
  const auto load = [&](const std::string& text) -> std::string {
    write("module.pt", text);
    try {
      const Module module(directory_.string(), {"module.pt", "float32"}, "target", {"forward"}, {});
      return "no error";
    } catch (const Error& caught) {
      EXPECT_EQ(caught.code(), ExitCode::bundle);
      EXPECT_THAT(caught.what(), Not(HasSubstr("\n")));
      return caught.what();
    }
  };
  EXPECT_THAT(load("<!DOCTYPE html><html></html>"), HasSubstr("HTML page"));
  EXPECT_THAT(load("version https://git-lfs"), HasSubstr("not a zip archive"));
  EXPECT_THAT(load(""), HasSubstr("not a zip archive"));
  EXPECT_THAT(load("PK\x03\x04 and then nothing that a zip archive has"), HasSubstr("damaged archive"));
}

TEST_F(ManifestTest, NumbersThatNoModelHas) {
  EXPECT_THAT(error([](Json& json) { json["cache"]["layers"] = 1'000'000'000'000; }),
              HasSubstr("cache.layers: got 1000000000000"));
  EXPECT_THAT(error([](Json& json) { json["tokens"]["first_image_id"] = INT64_MAX - 10; }),
              HasSubstr("tokens.first_image_id"));
  EXPECT_THAT(error([](Json& json) { json["target"]["hidden"] = INT64_MAX; }), HasSubstr("target.hidden"));
  EXPECT_THAT(error([](Json& json) { json["sampling"]["cfg_scale"] = -1; }), HasSubstr("sampling.cfg_scale"));
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

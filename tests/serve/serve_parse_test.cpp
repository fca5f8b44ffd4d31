#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "serve/parse.h"
#include "serve/refusal.h"

namespace lamplighter {
namespace {

PicturesWanted parse(const std::string& body) {
  return parse_generations(body, {});
}

// What is said of a body that is refused.
std::string refusal(const std::string& body, int status = 400) {
  try {
    parse(body);
  } catch (const Refusal& refused) {
    EXPECT_EQ(refused.status(), status) << body;
    return refused.what();
  }
  ADD_FAILURE() << "accepted " << body;
  return "";
}

TEST(ServeParseTest, ReadsOpenAisFieldsAndOurs) {
  const PicturesWanted wanted = parse(
      R"({"prompt": "a house", "model": "demo", "n": 3, "size": "256x128", "response_format": "url",
          "stream": true, "partial_images": 2, "user": "me", "quality": "high", "output_format": "png",
          "negative_prompt": "fog", "seed": 7, "cfg_scale": 2.5, "temperature": 0.5, "top_k": 9, "top_p": 0.5, "cfg_interval": 3,
          "method": "sjd", "tree": "chain-3", "deadline": 5})");
  EXPECT_EQ(wanted.model, "demo");
  EXPECT_EQ(wanted.count, 3);
  EXPECT_TRUE(wanted.by_url && wanted.stream && wanted.names_method);
  EXPECT_EQ(wanted.partial_images, 2);
  EXPECT_EQ(wanted.deadline_s, 5);
  EXPECT_EQ(wanted.method.method, "sjd");
  EXPECT_EQ(wanted.method.tree, "chain-3");
  const Request& request = wanted.request;
  EXPECT_EQ(request.prompt, "a house");
  EXPECT_EQ(request.negative_prompt, "fog");
  EXPECT_EQ(request.seed, 7U);
  EXPECT_EQ(request.width, 256);
  EXPECT_EQ(request.height, 128);
  EXPECT_EQ(request.cfg_scale, 2.5F);
  EXPECT_EQ(request.temperature, 0.5F);
  EXPECT_EQ(request.top_k, 9);
  EXPECT_EQ(request.top_p, 0.5F);
  EXPECT_EQ(request.cfg_interval, 3);
}

TEST(ServeParseTest, WhatIsNotGivenIsTheServers) {
  const PicturesWanted wanted =
      parse(R"({"prompt": "a house", "n": null, "size": "auto", "seed": null, "stream": null})");
  EXPECT_EQ(wanted.count, 1);
  EXPECT_FALSE(wanted.stream || wanted.by_url || wanted.names_method);
  EXPECT_EQ(wanted.request.width, 0);
  EXPECT_EQ(wanted.deadline_s, RequestLimits().deadline_s);
  EXPECT_NE(wanted.request.seed, parse(R"({"prompt": "a house"})").request.seed);
}

TEST(ServeParseTest, NoRequestNamesAFile) {
  EXPECT_NE(refusal(R"({"prompt": "a", "tree": "/etc/passwd"})").find("no file"), std::string::npos);
  EXPECT_NE(refusal(R"({"prompt": "a", "tree": "../tree.json"})").find("no file"), std::string::npos);
  EXPECT_NE(refusal(R"({"prompt": "a", "neighbours": "table.npy"})").find("no files"), std::string::npos);
  EXPECT_NE(refusal(R"({"prompt": "a", "output": "x.png"})").find("unknown field output"), std::string::npos);
}

TEST(ServeParseTest, HostileBodiesAreRefused) {
  const std::string deep(100'000, '[');
  for (const std::string& body :
       {std::string(), std::string("{"), std::string("[]"), std::string("null"), std::string("\"a\""), deep,
        "{\"prompt\": " + deep + "}", std::string("{\"prompt\": \"\xff\xfe\"}"),
        std::string("{\"prompt\": \"a\\ud800\"}"), std::string("{\"prompt\": \"a\\u0000b\"}"),
        std::string("{\"prompt\": \"a\", \"prompt\": \"b\"}"), std::string("{\"prompt\": \"a\"} x"),
        std::string("\0\0", 2), std::string("{\"prompt\": \"\"}"), std::string("{\"prompt\": 7}"),
        std::string("{\"prompt\": [\"a\"]}"), std::string("{}")})
    EXPECT_FALSE(refusal(body).empty());
  EXPECT_FALSE(refusal(R"({"prompt": ")" + std::string(9000, 'a') + R"("})").empty());
}

TEST(ServeParseTest, WrongValuesAreRefusedByName) {
  const char* const fields[][2] = {{"n", "0"},
                                   {"n", "11"},
                                   {"n", "1e9"},
                                   {"n", "-1"},
                                   {"n", "\"2\""},
                                   {"n", "99999999999999999999"},
                                   {"size", "\"256\""},
                                   {"size", "\"x\""},
                                   {"size", "\"0x256\""},
                                   {"size", "\"256x256x\""},
                                   {"size", "\"-1x4\""},
                                   {"size", "\"99999999999x1\""},
                                   {"size", "256"},
                                   {"seed", "-1"},
                                   {"seed", "1.5"},
                                   {"cfg_scale", "\"a\""},
                                   {"top_k", "0.5"},
                                   {"stream", "1"},
                                   {"response_format", "\"file\""},
                                   {"output_format", "\"webp\""},
                                   {"deadline", "0"},
                                   {"deadline", "-3"},
                                   {"partial_images", "-1"},
                                   {"method", "7"},
                                   {"model", "7"},
                                   {"width", "0"},
                                   {"user", "7"}};
  for (const auto& [key, value] : fields) {
    const std::string said = refusal(std::string(R"({"prompt": "a", ")") + key + "\": " + value + "}");
    EXPECT_NE(said.find(key), std::string::npos) << said;
  }
  refusal(R"({"prompt": "a", "size": "256x256", "width": 256})");
}

TEST(ServeParseTest, ADeadlineIsTheServersAtMost) {
  EXPECT_EQ(parse(R"({"prompt": "a", "deadline": 1e12})").deadline_s, RequestLimits().deadline_s);
}

TEST(ServeParseTest, ReadsTheFormOfTheWebUi) {
  const Json body = parse_body(
      R"({"prompt": "a house", "negative_prompt": "fog", "seed": -1, "steps": 20, "batch_size": 2, "n_iter": 3,
          "width": 256, "height": 256, "cfg_scale": 3, "sampler_name": "Euler a", "method": "ar",
          "override_settings": {"sd_model_checkpoint": "demo"}, "alwayson_scripts": {}})");
  const PicturesWanted wanted = parse_txt2img(body, {});
  EXPECT_EQ(wanted.model, "demo");
  EXPECT_EQ(wanted.count, 6);
  EXPECT_EQ(wanted.request.negative_prompt, "fog");
  EXPECT_FALSE(
      parse_txt2img(parse_body(R"({"prompt": "a", "negative_prompt": ""})"), {}).request.negative_prompt);
  EXPECT_EQ(wanted.request.cfg_scale, 3.0F);
  EXPECT_EQ(wanted.request.width, 256);
  EXPECT_EQ(wanted.method.method, "ar");
  const auto refuses = [](const std::string& text) {
    try {
      parse_txt2img(parse_body(text), {});
      return false;
    } catch (const Refusal& refused) {
      return refused.status() == 400;
    }
  };
  EXPECT_TRUE(refuses(R"({"prompt": "a", "batch_size": 4, "n_iter": 4})"));
  EXPECT_TRUE(refuses(R"({"prompt": "a", "seed": -2})"));
  EXPECT_TRUE(refuses(R"({"prompt": "a", "override_settings": 7})"));
  EXPECT_TRUE(refuses(R"({"prompt": "a", "tree": "a/b"})"));
  EXPECT_TRUE(refuses("[]"));
  EXPECT_TRUE(refuses("{}"));
}

Manifest captions() {
  Manifest manifest;
  manifest.prompt.emplace();
  manifest.prompt->kind = "text_features";
  Grid grid;
  grid.width = grid.height = 256;
  grid.rows = grid.columns = 16;
  manifest.grids = {grid};
  return manifest;
}

TEST(ServeParseTest, PicturesOfARequestHaveSeedsInARow) {
  const auto requests =
      requests_for(parse(R"({"prompt": "a", "n": 3, "seed": 18446744073709551615})"), captions(), {}, {});
  ASSERT_EQ(requests.size(), 3U);
  EXPECT_EQ(requests[0].seed, std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(requests[1].seed, 0U);
  EXPECT_EQ(requests[2].seed, 1U);
}

TEST(ServeParseTest, WhatABundleCannotDrawIsRefused) {
  const auto refuses = [](const std::string& body, const RequestLimits& limits = {}) {
    try {
      requests_for(parse(body), captions(), {}, limits);
      return false;
    } catch (const Refusal& refused) {
      return refused.status() == 400;
    }
  };
  EXPECT_FALSE(refuses(R"({"prompt": "a", "size": "256x256"})"));
  EXPECT_TRUE(refuses(R"({"prompt": "a", "size": "512x512"})"));
  EXPECT_TRUE(refuses(R"({"class": 3})"));
  EXPECT_TRUE(refuses(R"({"prompt": "a", "negative_prompt": "fog"})")) << "has no negative prompts";
  EXPECT_TRUE(refuses(R"({"prompt": "a", "temperature": -1})"));
  EXPECT_TRUE(refuses(R"({"prompt": "a", "method": "none such"})"));
  EXPECT_TRUE(refuses(R"({"prompt": "a", "method": "auto"})"));
  EXPECT_TRUE(refuses(R"({"prompt": "a", "method": "eagle"})")) << "has no drafter";
  RequestLimits small;
  small.pixels = 1000;
  EXPECT_TRUE(refuses(R"({"prompt": "a"})", small));
}

}  // namespace
}  // namespace lamplighter

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "serve/http_error.h"
#include "serve/parse.h"

namespace lamplighter {
namespace {

ImagesWanted parse(const std::string& body) {
  return parse_generations(body, {});
}

// What is said of a body that is refused.
std::string refusal(const std::string& body, int status = 400) {
  try {
    parse(body);
  } catch (const HttpError& refused) {
    EXPECT_EQ(refused.status(), status) << body;
    return refused.what();
  }
  ADD_FAILURE() << "accepted " << body;
  return "";
}

TEST(ServeParseTest, ReadsOpenAisFieldsAndOurs) {
  const ImagesWanted wanted = parse(
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
  const ImagesWanted wanted =
      parse(R"({"prompt": "a house", "n": null, "size": "auto", "seed": null, "stream": null})");
  EXPECT_EQ(wanted.count, 1);
  EXPECT_FALSE(wanted.stream || wanted.by_url || wanted.names_method);
  EXPECT_EQ(wanted.request.width, 0);
  EXPECT_EQ(wanted.deadline_s, RequestLimits().deadline_s);
  EXPECT_NE(wanted.request.seed, parse(R"({"prompt": "a house"})").request.seed);
}

TEST(ServeParseTest, NoRequestNamesAFile) {
  EXPECT_NE(refusal(R"({"prompt": "a", "tree": "/etc/passwd"})").find("cannot name files"),
            std::string::npos);
  EXPECT_NE(refusal(R"({"prompt": "a", "tree": "../tree.json"})").find("cannot name files"),
            std::string::npos);
  EXPECT_NE(refusal(R"({"prompt": "a", "neighbours": "table.npy"})").find("cannot name files"),
            std::string::npos);
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
                                   {"seed", "-2"},
                                   {"seed", "\"1a\""},
                                   {"seed", "\"18446744073709551616\""},
                                   {"seed", "1.5"},
                                   {"cfg_scale", "\"a\""},
                                   {"top_k", "0.5"},
                                   {"stream", "1"},
                                   {"response_format", "\"file\""},
                                   {"output_format", "\"gif\""},
                                   {"output_compression", "101"},
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
}

TEST(ServeParseTest, ManyValuesAreRefusedBeforeTheyAreRead) {
  const auto with = [](const std::string& value, std::size_t count) {
    std::string all = value;
    for (std::size_t i = 1; i < count; ++i) all += "," + value;
    return R"({"prompt": "a, [b], {\"c\\", "extra_params": [)" + all + "]}";
  };
  const std::size_t half = kMostValues / 2;
  EXPECT_NO_THROW(parse(with("7", kMostValues - 10)));
  EXPECT_NO_THROW(parse(R"({"prompt": ")" + std::string(8000, ',') + R"("})"));
  for (const std::string& body : {with("7", kMostValues), with("[]", half), with(R"({"":0})", half)})
    EXPECT_NE(refusal(body).find("values"), std::string::npos);
}

TEST(ServeParseTest, WidthAndHeightAreMoreThanASize) {
  const std::string body = R"({"prompt": "a", "size": "1024x1024", "width": 512, "height": 256})";
  const ImagesWanted wanted = parse(body);
  EXPECT_EQ(wanted.request.width, 512);
  EXPECT_EQ(wanted.request.height, 256);
  EXPECT_EQ(wanted.unused, std::vector<std::string>{"size"});
  RequestRules strict;
  strict.strict = true;
  EXPECT_THROW(parse_generations(body, strict), HttpError);
}

TEST(ServeParseTest, WholeNumbersMayHaveAPoint) {
  const ImagesWanted wanted =
      parse(R"({"prompt": "a", "n": 2.0, "seed": 42.0, "width": 512.0, "top_k": 1e2})");
  EXPECT_EQ(wanted.count, 2);
  EXPECT_EQ(wanted.request.seed, 42U);
  EXPECT_EQ(wanted.request.width, 512);
  EXPECT_EQ(wanted.request.top_k, 100);
  EXPECT_NE(refusal(R"({"prompt": "a", "n": 1.5})").find("n: got 1.5"), std::string::npos);
  EXPECT_NE(refusal(R"({"prompt": "a", "seed": 1e300})").find("seed"), std::string::npos);
}

TEST(ServeParseTest, TheWebUiTakesNumbersAsTexts) {
  const auto read = [](const std::string& text) { return parse_txt2img(parse_body(text), {}); };
  const ImagesWanted wanted =
      read(R"({"prompt": "7", "width": "512", "height": "256.0", "cfg_scale": "3.5", "batch_size": "2"})");
  EXPECT_EQ(wanted.request.prompt, "7");
  EXPECT_EQ(wanted.request.width, 512);
  EXPECT_EQ(wanted.request.height, 256);
  EXPECT_EQ(wanted.request.cfg_scale, 3.5F);
  EXPECT_EQ(wanted.count, 2);
  EXPECT_EQ(read(R"({"prompt": "a", "cfg_scale": "7"})").request.cfg_scale, std::nullopt);
  for (const char* width : {R"("wide")", R"("")", R"("[512]")", R"("512.5")"})
    EXPECT_THROW(read(std::string(R"({"prompt": "a", "width": )") + width + "}"), HttpError) << width;
}

TEST(ServeParseTest, ADeadlineIsTheServersAtMost) {
  EXPECT_EQ(parse(R"({"prompt": "a", "deadline": 1e12})").deadline_s, RequestLimits().deadline_s);
}

TEST(ServeParseTest, ReadsTheFormOfTheWebUi) {
  const Json body = parse_body(
      R"({"prompt": "a house", "negative_prompt": "fog", "seed": -1, "steps": 20, "batch_size": 2, "n_iter": 3,
          "width": 256, "height": 256, "cfg_scale": 3, "sampler_name": "Euler a", "method": "ar",
          "override_settings": {"sd_model_checkpoint": "demo"}, "alwayson_scripts": {}})");
  const ImagesWanted wanted = parse_txt2img(body, {});
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
    } catch (const HttpError& refused) {
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

TEST(ServeParseTest, ImagesOfARequestHaveSeedsInARow) {
  const auto requests =
      plan_requests(parse(R"({"prompt": "a", "n": 3, "seed": 18446744073709551615})"), captions(), {}, {})
          .requests;
  ASSERT_EQ(requests.size(), 3U);
  EXPECT_EQ(requests[0].seed, std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(requests[1].seed, 0U);
  EXPECT_EQ(requests[2].seed, 1U);
}

TEST(ServeParseTest, WhatABundleCannotGenerateIsRefused) {
  const auto refuses = [](const std::string& body, const RequestRules& rules = {}) {
    try {
      plan_requests(parse_generations(body, rules), captions(), {}, rules);
      return false;
    } catch (const HttpError& refused) {
      return refused.status() == 400;
    }
  };
  EXPECT_FALSE(refuses(R"({"prompt": "a", "size": "256x256"})"));
  RequestRules strict;
  strict.strict = true;
  EXPECT_TRUE(refuses(R"({"prompt": "a", "size": "512x512"})", strict));
  EXPECT_FALSE(refuses(R"({"prompt": "a", "size": "512x512"})"));
  EXPECT_TRUE(refuses(R"({"class": 3})"));
  for (const char* body :
       {R"({"prompt": "a", "negative_prompt": "fog"})", R"({"prompt": "a", "steps": 30})"}) {
    EXPECT_TRUE(refuses(body, strict)) << "the bundle has no such thing";
    EXPECT_FALSE(refuses(body)) << "other servers have it";
  }
  EXPECT_TRUE(refuses(R"({"prompt": "a", "temperature": -1})"));
  EXPECT_TRUE(refuses(R"({"prompt": "a", "method": "none such"})"));
  EXPECT_FALSE(refuses(R"({"prompt": "a", "method": "auto"})"));
  EXPECT_TRUE(refuses(R"({"prompt": "a", "method": "auto", "tree": "chain-3"})"));
  EXPECT_TRUE(refuses(R"({"prompt": "a", "method": "eagle"})")) << "has no drafter";
  RequestRules small;
  small.limits.pixels = 1000;
  EXPECT_TRUE(refuses(R"({"prompt": "a"})", small));
}

TEST(ServeParseTest, FieldsThatAreEmptyAreNotGiven) {
  const ImagesWanted wanted = parse(
      R"({"prompt": "a", "model": "", "size": "", "quality": "", "style": "", "user": "", "response_format": "",
          "output_format": "", "method": "", "seed": "", "background": ""})");
  EXPECT_EQ(wanted.model, "");
  EXPECT_EQ(wanted.request.width, 0);
  EXPECT_FALSE(wanted.names_method || wanted.by_url);
  EXPECT_TRUE(wanted.unused.empty());
  EXPECT_NE(parse(R"({"prompt": "a", "seed": -1})").request.seed,
            parse(R"({"prompt": "a", "seed": "-1"})").request.seed);
  EXPECT_EQ(parse(R"({"prompt": "a", "seed": "18446744073709551615"})").request.seed,
            std::numeric_limits<std::uint64_t>::max());
}

TEST(ServeParseTest, FieldsOfOtherServersAreNamedAsUnused) {
  const std::string body =
      R"({"prompt": "a", "guidance_scale": 7.5, "num_inference_steps": 30, "quality": "hd", "style": "vivid", "background": "auto"})";
  EXPECT_EQ(parse(body).unused,
            (std::vector<std::string>{"quality", "style", "guidance_scale", "num_inference_steps"}));
  RequestRules strict;
  strict.strict = true;
  EXPECT_THROW(parse_generations(body, strict), HttpError);
}

TEST(ServeParseTest, ReadsKindsOfFiles) {
  const auto format = [](const std::string& fields) {
    return parse("{\"prompt\": \"a\"" + fields + "}").format;
  };
  EXPECT_EQ(format("").name, "png");
  EXPECT_EQ(format(R"(, "output_format": "jpg", "output_compression": 0)").quality, 1);
  EXPECT_EQ(format(R"(, "output_format": "jpeg")").name, "jpeg");
  EXPECT_EQ(format(R"(, "output_format": "jpeg")").quality, std::nullopt);
  EXPECT_EQ(format(R"(, "output_format": "png", "output_compression": 50)").quality, std::nullopt);
}

TEST(ServeParseTest, TheGuidanceThatClientsSendByThemselvesDoesNotCount) {
  const auto guidance = [](const std::string& value, ClientGuidance rule) {
    RequestRules rules;
    rules.webui_guidance = rule;
    return parse_txt2img(parse_body(R"({"prompt": "a", "cfg_scale": )" + value + "}"), rules)
        .request.cfg_scale;
  };
  EXPECT_EQ(guidance("7", ClientGuidance::automatic), std::nullopt);
  EXPECT_EQ(guidance("7.0", ClientGuidance::automatic), std::nullopt);
  EXPECT_EQ(guidance("6.5", ClientGuidance::automatic), 6.5F);
  EXPECT_EQ(guidance("7", ClientGuidance::always), 7.0F);
  EXPECT_EQ(guidance("6.5", ClientGuidance::never), std::nullopt);
}

TEST(ServeParseTest, TheWebUisDefaultsAreNamedAsUnused) {
  const ImagesWanted wanted = parse_txt2img(
      parse_body(
          R"({"prompt": "a", "steps": 20, "cfg_scale": 7, "sampler_name": "Euler a", "enable_hr": false, "styles": [],
              "subseed": -1, "denoising_strength": 0.7, "override_settings": {"sd_vae": "x", "y": ""},
              "alwayson_scripts": {"z": {"args": [1]}}, "save_images": true, "negative_prompt": "fog"})"),
      {});
  EXPECT_EQ(wanted.unused, (std::vector<std::string>{"override_settings.sd_vae", "steps", "cfg_scale",
                                                     "denoising_strength", "alwayson_scripts"}));
  EXPECT_EQ(wanted.sampler, "Euler a");
  const PlannedRequests plan = plan_requests(wanted, captions(), {}, {});
  EXPECT_FALSE(plan.requests[0].negative_prompt) << "the bundle has none";
  EXPECT_EQ(plan.unused.size(), wanted.unused.size() + 2) << "sampler_name, negative_prompt";
  ASSERT_EQ(plan.warnings.size(), 1U);
  EXPECT_NE(plan.warnings[0].find("sampler_name, negative_prompt"), std::string::npos) << plan.warnings[0];
}

TEST(ServeParseTest, TheNearestSizeIsTakenAndNamed) {
  Manifest manifest = captions();
  for (const auto& [width, height] : {std::pair(512, 512), std::pair(768, 512)}) {
    Grid grid = manifest.grids.front();
    grid.width = width;
    grid.height = height;
    manifest.grids.push_back(grid);
  }
  const auto size = [&](const std::string& fields, std::int64_t pixels = 1 << 22) {
    RequestRules rules;
    rules.limits.pixels = pixels;
    const PlannedRequests plan =
        plan_requests(parse("{\"prompt\": \"a\"" + fields + "}"), manifest, {}, rules);
    const Request& request = plan.requests[0];
    return std::to_string(request.width) + "x" + std::to_string(request.height) +
           (plan.warnings.empty() ? "" : "!");
  };
  EXPECT_EQ(size(""), "0x0");
  EXPECT_EQ(size(R"(, "size": "256x256")"), "256x256");
  EXPECT_EQ(size(R"(, "size": "1024x1024")"), "512x512!");
  EXPECT_EQ(size(R"(, "size": "1792x1024")"), "768x512!");
  EXPECT_EQ(size(R"(, "size": "1x1")"), "256x256!");
  EXPECT_EQ(size(R"(, "width": 700)"), "768x512!");
  EXPECT_EQ(size(R"(, "size": "1024x1024")", 100'000), "256x256!");
}

}  // namespace
}  // namespace lamplighter

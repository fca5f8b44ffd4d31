#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>

#include "serve/http_error.h"
#include "serve/openapi.h"
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

TEST(ServeParseTest, ATreeMayBringItsPaths) {
  const ImagesWanted wanted = parse(R"({"prompt": "a", "method": "eagle", "tree_paths": [[0], [0, 1]]})");
  EXPECT_NE(wanted.method.tree.find("[[0],[0,1]]"), std::string::npos) << wanted.method.tree;
  EXPECT_TRUE(wanted.unused.empty());
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
  EXPECT_EQ(parse(R"({"prompt": "a", "output": "x.png"})").unused, std::vector<std::string>{"output"});
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
                                   {"quality", "90"},
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

TEST(ServeParseTest, SidesMayHaveOtherSignsBetweenThem) {
  RequestRules strict;
  strict.strict = true;
  for (const char* sign : {"X", "*", "\u00d7"}) {
    const std::string body = std::string(R"({"prompt": "a", "size": "512)") + sign + "256\"}";
    EXPECT_EQ(parse(body).request.width, 512) << sign;
    EXPECT_EQ(parse(body).request.height, 256) << sign;
    EXPECT_THROW(parse_generations(body, strict), HttpError) << sign;
  }
  for (const char* size : {" 512x256 ", "512 x 256", "512\\tX 256"}) {
    const std::string body = std::string(R"({"prompt": "a", "size": ")") + size + "\"}";
    EXPECT_EQ(parse(body).request.height, 256) << size;
    EXPECT_THROW(parse_generations(body, strict), HttpError) << size;
  }
  EXPECT_EQ(parse(R"({"prompt": "a", "size": "AUTO"})").request.width, 0);
  for (const char* size : {"512", "512xx256", "512**256", "16:", ":9", "16:0", "-1:1", "16:9:1", "2000:1",
                           "3K", " ", "99999999999:1"})
    EXPECT_NE(refusal(std::string(R"({"prompt": "a", "size": ")") + size + "\"}").find("size"),
              std::string::npos);
}

TEST(ServeParseTest, SizesMayBeShapesOrThousandsOfPixels) {
  RequestRules strict;
  strict.strict = true;
  const auto sides_of = [&](const std::string& size) {
    const std::string body = R"({"prompt": "a", "size": ")" + size + "\"}";
    EXPECT_THROW(parse_generations(body, strict), HttpError) << size;
    const Request request = parse(body).request;
    return std::pair{request.width, request.height};
  };
  EXPECT_EQ(sides_of("1K"), std::pair(1024, 1024));
  EXPECT_EQ(sides_of("2k"), std::pair(2048, 2048));
  EXPECT_EQ(sides_of("4K"), std::pair(4096, 4096));
  EXPECT_EQ(sides_of("1:1"), std::pair(1024, 1024));
  EXPECT_EQ(sides_of("16:9"), std::pair(1360, 765));
  EXPECT_EQ(sides_of("2:3"), std::pair(836, 1254));
  EXPECT_EQ(sides_of("1024:1"), std::pair(32768, 32));
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

TEST(ServeParseTest, ADeadlineIsTheServersAtMost) {
  EXPECT_EQ(parse(R"({"prompt": "a", "deadline": 1e12})").deadline_s, RequestLimits().deadline_s);
}

TEST(ServeParseTest, FieldsThatAreEmptyAreNotGiven) {
  const ImagesWanted wanted = parse(
      R"({"prompt": "a", "model": "", "size": "", "quality": "", "style": "", "user": "", "response_format": "",
          "output_format": "", "method": "", "seed": "", "background": "", "n": "", "tree": "", "cfg_scale": "", "top_k": ""})");
  EXPECT_EQ(wanted.model, "");
  EXPECT_EQ(wanted.request.width, 0);
  EXPECT_FALSE(wanted.names_method || wanted.by_url);
  EXPECT_TRUE(wanted.unused.empty());
  EXPECT_NE(refusal(R"({"prompt": ""})").find("prompt"), std::string::npos);
  EXPECT_NE(parse(R"({"prompt": "a", "seed": -1})").request.seed,
            parse(R"({"prompt": "a", "seed": "-1"})").request.seed);
  EXPECT_EQ(parse(R"({"prompt": "a", "seed": "18446744073709551615"})").request.seed,
            std::numeric_limits<std::uint64_t>::max());
}

TEST(ServeParseTest, FieldsOfOtherServersAreNamedAsUnused) {
  const std::string body =
      R"({"prompt": "a", "guidance_scale": 7.5, "num_inference_steps": 30, "quality": "hd", "style": "vivid", "background": "auto"})";
  EXPECT_EQ(parse(body).unused,
            (std::vector<std::string>{"guidance_scale", "num_inference_steps", "quality", "style"}));
  RequestRules strict;
  strict.strict = true;
  EXPECT_THROW(parse_generations(body, strict), HttpError);
}

TEST(ServeParseTest, FieldsThatChangeNothingHereAreNamedAsUnused) {
  const auto unused = [](const std::string& fields) {
    return parse(R"({"prompt": "a", )" + fields + "}").unused;
  };
  EXPECT_EQ(unused(R"("output_compression": 40, "partial_images": 3)"),
            (std::vector<std::string>{"output_compression", "partial_images"}));
  EXPECT_TRUE(unused(R"("output_compression": 40, "output_format": "jpeg")").empty());
  EXPECT_TRUE(unused(R"("partial_images": 3, "stream": true)").empty());
}

TEST(ServeParseTest, WhatLooksLikeASlipIsRefused) {
  const char* const slips[][2] = {{"seeed", "seed"},
                                  {"sede", "seed"},
                                  {"sizes", "size"},
                                  {"heigth", "height"},
                                  {"cfg_scle", "cfg_scale"},
                                  {"cfgScale", "cfg_scale"},
                                  {"tempreature", "temperature"},
                                  {"negativePrompt", "negative_prompt"},
                                  {"top-k", "top_k"},
                                  {"output_fromat", "output_format"},
                                  {"methode", "method"},
                                  {"relax-k", "relax_k"}};
  for (const auto& [slip, meant] : slips) {
    const std::string said = refusal(std::string(R"({"prompt": "a", ")") + slip + "\": 1}");
    EXPECT_NE(said.find(std::string("did you mean ") + meant + "?"), std::string::npos) << said;
  }
}

TEST(ServeParseTest, AllFieldsThatAreDescribedAreRead) {
  RequestRules strict;
  strict.strict = true;
  for (const std::string& field : generation_fields()) {
    try {
      parse_generations(R"({"prompt": "a", ")" + (field == "prompt" ? "x" : field) + R"(": {}})", strict);
      EXPECT_EQ(field, "tree_paths");  // which is checked with its method
    } catch (const HttpError& refused) {
      const bool is_unknown = std::string(refused.what()).find("unknown field") != std::string::npos;
      EXPECT_EQ(is_unknown, field == "prompt") << refused.what();
    }
  }
}

TEST(ServeParseTest, WhatLooksLikeNoneOfOursIsAnotherServers) {
  for (const std::string key :
       {"scale",       "store",  "detail", "depth",    "type",           "mode",
        "step",        "styles", "models", "prompt_2", "prompt2",        "negative_prompt_2",
        "cfg_rescale", "weight", "top_a",  "",         "stream_options", "extra_body",
        "image_size",  "SEED",   "\\u0000"}) {
    RequestRules strict;
    strict.strict = true;
    const std::string body = R"({"prompt": "a", ")" + key + R"(": {"a": [1]}})";
    EXPECT_EQ(parse(body).unused.size(), 1U) << key;
    EXPECT_THROW(parse_generations(body, strict), HttpError) << key;
  }
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

}  // namespace
}  // namespace lamplighter

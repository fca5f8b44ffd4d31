#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "serve/http_error.h"
#include "serve/parse.h"

namespace lamplighter {
namespace {

ImagesWanted parsed(const std::string& body) {
  return parse_generations(body, {});
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

TEST(ServePlanTest, ImagesOfARequestHaveSeedsInARow) {
  const auto requests =
      plan_requests(parsed(R"({"prompt": "a", "n": 3, "seed": 18446744073709551615})"), captions(), {}, {})
          .requests;
  ASSERT_EQ(requests.size(), 3U);
  EXPECT_EQ(requests[0].seed, std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(requests[1].seed, 0U);
  EXPECT_EQ(requests[2].seed, 1U);
}

TEST(ServePlanTest, OneSideIsEnough) {
  const auto warnings = [](const std::string& body) {
    PlannedRequests plan = plan_requests(parsed(body), captions(), {}, {});
    EXPECT_EQ(plan.requests.front().width, 256) << body;
    EXPECT_EQ(plan.requests.front().height, 256) << body;
    return plan.warnings;
  };
  EXPECT_TRUE(warnings(R"({"prompt": "a", "width": 256})").empty());
  EXPECT_TRUE(warnings(R"({"prompt": "a", "height": 256})").empty());
  EXPECT_EQ(warnings(R"({"prompt": "a", "height": 255})").size(), 1U);
  EXPECT_EQ(warnings(R"({"prompt": "a", "width": 256, "height": 512})").size(), 1U);
}

TEST(ServePlanTest, ShapesAndThousandsOfPixelsBecomeTheNearestSize) {
  Manifest manifest = captions();
  for (const auto& [width, height] : {std::pair{1344, 768}, {1024, 1024}, {768, 1344}}) {
    Grid grid;
    grid.width = width;
    grid.height = height;
    manifest.grids.push_back(grid);
  }
  const auto size_of = [&](const std::string& size) {
    const PlannedRequests plan =
        plan_requests(parsed(R"({"prompt": "a", "size": ")" + size + "\"}"), manifest, {}, {});
    const Request& request = plan.requests.front();
    return std::to_string(request.width) + "x" + std::to_string(request.height) +
           (plan.warnings.empty() ? "" : " " + plan.warnings.front());
  };
  EXPECT_EQ(size_of("1K"), "1024x1024");
  EXPECT_EQ(size_of("1:1"), "1024x1024");
  EXPECT_EQ(size_of("2K"), "1024x1024 size:  has no 2048x2048, the nearest it has is 1024x1024");
  EXPECT_EQ(size_of("16:9"), "1344x768 size:  has no 1360x765, the nearest it has is 1344x768");
  EXPECT_EQ(size_of("9:16"), "768x1344 size:  has no 765x1360, the nearest it has is 768x1344");
}

TEST(ServePlanTest, WhatABundleCannotGenerateIsRefused) {
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

TEST(ServePlanTest, AWarningNamesAFewOfManyFields) {
  std::string body = R"({"prompt": "a")";
  for (int i = 0; i < 100; ++i) body += ", \"" + std::string(500, 'x') + std::to_string(i) + "\": 1";
  const PlannedRequests plan = plan_requests(parsed(body + "}"), captions(), {}, {});
  EXPECT_EQ(plan.unused.size(), 100U);
  ASSERT_EQ(plan.warnings.size(), 1U);
  EXPECT_LT(plan.warnings[0].size(), 10'000U);
  EXPECT_NE(plan.warnings[0].find(" and 36 others"), std::string::npos) << plan.warnings[0];
}

TEST(ServePlanTest, TheWebUisDefaultsAreNamedAsUnused) {
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

TEST(ServePlanTest, TheNearestSizeIsTakenAndNamed) {
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
        plan_requests(parsed("{\"prompt\": \"a\"" + fields + "}"), manifest, {}, rules);
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

#include "pipeline/resolved_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "lamplighter/error.h"
#include "lamplighter/pipeline.h"
#include "tests/error_of.h"

namespace lamplighter {
namespace {

using ::testing::ElementsAre;

// Captions, with grids of 4 x 4 and of 2 x 2 tokens.
Manifest captions() {
  Manifest manifest;
  manifest.prompt.emplace();
  manifest.prompt->kind = "tokens";
  manifest.grids.resize(2);
  manifest.grids[0].width = manifest.grids[0].height = 32;
  manifest.grids[0].rows = manifest.grids[0].columns = 4;
  manifest.grids[1].width = manifest.grids[1].height = 16;
  manifest.grids[1].rows = manifest.grids[1].columns = 2;
  manifest.sampling.cfg_scale = 7.5F;
  manifest.sampling.top_k = 100;
  return manifest;
}

Request caption(const std::string& prompt, int side = 0) {
  Request request;
  request.prompt = prompt;
  request.width = request.height = side;
  return request;
}

PromptIds letters(const Request& request, const Grid& grid) {
  PromptIds prompt;
  for (const char letter : request.prompt) prompt.ids.push_back(letter);
  prompt.unconditional.resize(static_cast<std::size_t>(grid.rows), 1);
  return prompt;
}

TEST(Request, TakesItsOwnValuesOverTheBundles) {
  const Manifest manifest = captions();
  Request request = caption("a", 16);
  request.top_k = 5;
  request.seed = 9;
  const ResolvedRequest resolved = resolve_request(manifest, request);
  EXPECT_EQ(resolved.grid, &manifest.grids[1]);
  EXPECT_EQ(resolved.sampling.top_k, 5);
  EXPECT_EQ(resolved.sampling.cfg_scale, 7.5F);
  EXPECT_EQ(resolved.seed, 9U);
  EXPECT_FALSE(resolved.is_greedy());
}

TEST(Request, NegativePromptsAreForFamiliesThatHaveThem) {
  Manifest manifest = captions();
  manifest.family = "anole";
  Request request = caption("a");
  request.negative_prompt = "fog";
  const auto message = [&](ExitCode expected) -> std::string {
    return error_of(expected, [&] { resolve_request(manifest, request); });
  };
  EXPECT_EQ(message(ExitCode::usage),
            "negative_prompt: got \"fog\", expected none: anole has no negative prompts");
  request.negative_prompt = "";  // asks for one all the same
  EXPECT_NE(message(ExitCode::usage), "");
  manifest.prompt->negative_text = "no {prompt}";
  EXPECT_EQ(message(ExitCode::usage), "");
  request.negative_prompt = std::string("a\0b", 3);
  EXPECT_EQ(message(ExitCode::input), "negative_prompt: got a zero byte");
  request.negative_prompt = "\xFF";
  EXPECT_EQ(message(ExitCode::input), "negative_prompt: byte 1 is not valid UTF-8");
}

TEST(Request, RefusesWhatTheBundleCannotGenerate) {
  Manifest manifest = captions();
  const auto refuses = [&](const Request& request) {
    return error_of(ExitCode::usage, [&] { resolve_request(manifest, request); }) != "";
  };
  Request request = caption("a");
  EXPECT_FALSE(refuses(request));
  EXPECT_TRUE(refuses(caption("a", 20)));
  request.class_id = 1;
  EXPECT_TRUE(refuses(request));
  manifest.prompt->kind = "class";
  manifest.prompt->classes = 2;
  EXPECT_TRUE(refuses(caption("a")));
  EXPECT_TRUE(refuses(request));  // a caption beside a class
  request.prompt.clear();
  EXPECT_FALSE(refuses(request));
  request.class_id = 2;
  EXPECT_TRUE(refuses(request));
  request.class_id = 0;
  for (const float factor : {-1.0F, 1e7F, 3e38F, std::numeric_limits<float>::infinity(),
                             std::numeric_limits<float>::quiet_NaN()}) {
    request.cfg_scale = factor;
    request.temperature = {};
    EXPECT_TRUE(refuses(request)) << factor;
    request.cfg_scale = {};
    request.temperature = factor;
    EXPECT_TRUE(refuses(request)) << factor;
  }
  request.temperature = 1e6F;
  EXPECT_FALSE(refuses(request));
  request.top_p = 0.0F;
  EXPECT_TRUE(refuses(request));
}

TEST(Request, ChecksCaptions) {
  const auto message_of = [](const std::string& prompt) -> std::string {
    return error_of(ExitCode::input, [&] { TextToImage::check(captions(), caption(prompt)); });
  };
  EXPECT_EQ(message_of("a cat"), "");
  EXPECT_EQ(message_of("ab\xff"), "prompt: byte 3 is not valid UTF-8");
  EXPECT_EQ(message_of(std::string(32769, 'x')), "prompt: got 32769 bytes, expected at most 32768");
}

TEST(Request, TokenisesEveryPromptOnce) {
  const Manifest manifest = captions();
  const std::vector<Request> requests{caption("a"),     caption("a"),     caption("b"), caption("a"),
                                      caption("a", 16), caption("a", 16), caption("a")};
  std::vector<std::string> calls;
  const std::vector<ResolvedRequest> resolved =
      resolve_requests(manifest, requests, [&](const Request& request, const Grid& grid) {
        calls.push_back(request.prompt + std::to_string(grid.rows));
        return letters(request, grid);
      });
  EXPECT_THAT(calls, ElementsAre("a4", "b4", "a4", "a2", "a4"));
  EXPECT_EQ(resolved[0].prompt, resolved[1].prompt);
  EXPECT_NE(resolved[1].prompt, resolved[3].prompt);
  EXPECT_EQ(resolved[4].prompt, resolved[5].prompt);
  EXPECT_THAT(resolved[2].prompt->ids, ElementsAre('b'));
  EXPECT_EQ(resolved[4].prompt->length(), 2);
}

TEST(Request, TokenisesNothingBeforeAllAreChecked) {
  const Manifest manifest = captions();
  bool called = false;
  EXPECT_THROW(resolve_requests(manifest, {caption("a"), caption("b", 20)},
                                [&](const Request& request, const Grid& grid) {
                                  called = true;
                                  return letters(request, grid);
                                }),
               Error);
  EXPECT_FALSE(called);
}

TEST(Request, GroupsNeighboursOfOneGridAndKind) {
  const Manifest manifest = captions();
  std::vector<Request> requests{caption("a"),     caption("b"),     caption("c"),
                                caption("d", 16), caption("e", 16), caption("f")};
  requests[2].temperature = 0.0F;
  const std::vector<RequestGroup> groups = group_requests(resolve_requests(manifest, requests, letters));
  std::vector<std::vector<std::int64_t>> found;
  for (const RequestGroup& group : groups) {
    found.push_back({static_cast<std::int64_t>(group.begin), static_cast<std::int64_t>(group.end),
                     group.tokens_before, group.tokens_all});
  }
  EXPECT_THAT(found, ElementsAre(ElementsAre(0, 2, 0, 72), ElementsAre(2, 3, 32, 72),
                                 ElementsAre(3, 5, 48, 72), ElementsAre(5, 6, 56, 72)));
  EXPECT_TRUE(group_requests({}).empty());
}

}  // namespace
}  // namespace lamplighter

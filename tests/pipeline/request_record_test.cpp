#include "lamplighter/record.h"

#include <gtest/gtest.h>

#include "lamplighter/error.h"
#include "tests/error_of.h"

namespace lamplighter {
namespace {

TEST(Record, HasTheFlagsOfGenerate) {
  const Request request = parse_request(
      R"({"prompt": "a boat", "seed": 7, "top_k": 5, "cfg_scale": 2.5, "method": "lantern++", "lambda": 3})");
  EXPECT_EQ(request.prompt, "a boat");
  EXPECT_EQ(request.seed, 7U);
  EXPECT_EQ(request.top_k, 5);
  EXPECT_EQ(request.cfg_scale, 2.5F);
  ASSERT_TRUE(request.method);
  EXPECT_EQ(request.method->method, "lantern++");
  EXPECT_EQ(request.method->lambda, std::vector<float>{3});
}

TEST(Record, KeepsDefaults) {
  const Request request = parse_request(R"({"class": 3})");
  EXPECT_EQ(request.class_id, 3);
  EXPECT_EQ(request.seed, Request().seed);
  EXPECT_FALSE(request.method);
}

TEST(Record, RefusesWhatItDoesNotKnow) {
  for (const char* json : {R"({"prompt": "a boat", "colour": 1})", R"({"prompt": "a boat", "top_k": "many"})",
                           R"({"prompt": "a boat")"}) {
    EXPECT_NE(error_of(ExitCode::usage, [&] { parse_request(json); }), "") << json;
  }
  EXPECT_NE(error_of(ExitCode::input, [&] { parse_request(R"({"prompt": " "})"); }), "");
}

}  // namespace
}  // namespace lamplighter

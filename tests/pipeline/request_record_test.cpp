#include "lamplighter/record.h"

#include <gtest/gtest.h>

#include "lamplighter/error.h"

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
  const auto code_of = [](const char* json) {
    try {
      parse_request(json);
      return ExitCode::ok;
    } catch (const Error& error) {
      return error.code();
    }
  };
  EXPECT_EQ(code_of(R"({"prompt": "a boat", "colour": 1})"), ExitCode::usage);
  EXPECT_EQ(code_of(R"({"prompt": "a boat", "top_k": "many"})"), ExitCode::usage);
  EXPECT_EQ(code_of(R"({"prompt": "a boat")"), ExitCode::usage);
  EXPECT_EQ(code_of(R"({"prompt": " "})"), ExitCode::input);
}

}  // namespace
}  // namespace lamplighter

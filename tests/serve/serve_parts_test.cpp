#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <set>
#include <string>

#include "base/base64.h"
#include "serve/answers.h"
#include "serve/metrics.h"
#include "serve/store.h"

namespace lamplighter {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

TEST(ServeStoreTest, ImagesGoWhenTheirTimeHasPassed) {
  ImageStore store(seconds(10), 1000);
  const auto now = ImageStore::Clock::now();
  const std::string name = store.add("bytes", now);
  EXPECT_EQ(name.size(), 32U);
  EXPECT_EQ(*store.find(name, now + seconds(9)), "bytes");
  EXPECT_EQ(store.find(name, now + seconds(10)), nullptr);
  EXPECT_EQ(store.find("", now), nullptr);
}

TEST(ServeStoreTest, TheOldestGoFirstWhereRoomIsShort) {
  ImageStore store(seconds(10), 25);
  std::set<std::string> names;
  std::string last;
  const std::string first = store.add(std::string(10, 'a'));
  for (int i = 0; i < 2; ++i) names.insert(last = store.add(std::string(10, 'b')));
  EXPECT_EQ(names.size(), 2U);
  EXPECT_EQ(store.find(first), nullptr);
  EXPECT_NE(store.find(last), nullptr);
  EXPECT_NE(store.find(*names.begin()), nullptr);
}

TEST(ServeMetricsTest, CountsImagesByMethod) {
  Metrics metrics;
  Result result;
  result.method.method = "sjd";
  result.statistics.tokens = 256;
  result.statistics.target_passes = 128;
  metrics.generated("de\"mo", result, {0.2, 2});
  metrics.generated("de\"mo", result, {20, 2});
  metrics.answered("/health", 200, 0.001);
  const std::string text = metrics.text({{"de\"mo", {3, 2}}});
  const std::string labels = R"({model="de\"mo",method="sjd"})";
  EXPECT_THAT(text, HasSubstr("lamplighter_tokens_total" + labels + " 512\n"));
  EXPECT_THAT(text, HasSubstr("lamplighter_step_compression" + labels + " 2.0\n"));
  EXPECT_THAT(text, HasSubstr("lamplighter_queue_images{model=\"de\\\"mo\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("lamplighter_images_in_work{model=\"de\\\"mo\"} 2\n"));
  const std::string bucket = R"(lamplighter_queue_seconds_bucket{model="de\"mo",method="sjd",le=)";
  EXPECT_THAT(text, HasSubstr(bucket + "\"0.1\"} 0\n"));
  EXPECT_THAT(text, HasSubstr(bucket + "\"0.25\"} 1\n"));
  EXPECT_THAT(text, HasSubstr(bucket + "\"30.0\"} 2\n"));
  EXPECT_THAT(text, HasSubstr(bucket + "\"+Inf\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("lamplighter_image_seconds_sum" + labels + " 4.0\n"));
  EXPECT_THAT(text, HasSubstr("lamplighter_requests_total{path=\"/health\",status=\"200\"} 1\n"));
}

TEST(ServeAnswersTest, ErrorsHaveOpenAisForm) {
  const Json error = openai_error({429, "queue_full", "full", 3}).at("error");
  EXPECT_EQ(error.at("type"), "rate_limit_error");
  EXPECT_EQ(error.at("code"), "queue_full");
  EXPECT_EQ(error.at("message"), "full");
  EXPECT_TRUE(error.at("param").is_null());
  const HttpError turned(400, "x", "a\xe2\x80\xae!");
  EXPECT_EQ(openai_error(turned)["error"]["message"], "a\\u202e!");
  EXPECT_EQ(webui_error(turned)["detail"], "a\\u202e!");
  EXPECT_EQ(openai_error({400, "x", "y"})["error"]["type"], "invalid_request_error");
  EXPECT_EQ(openai_error({401, "x", "y"})["error"]["type"], "authentication_error");
  EXPECT_EQ(openai_error({503, "x", "y"})["error"]["type"], "server_error");
}

TEST(ServeAnswersTest, SecretsAreComparedWhole) {
  EXPECT_TRUE(is_same_secret("abc", "abc"));
  for (const char* given : {"", "ab", "abd", "abcabc", "abcd", "xbc"})
    EXPECT_FALSE(is_same_secret(given, "abc"));
  EXPECT_FALSE(is_same_secret("abcabc", "abc"));
  EXPECT_FALSE(is_same_secret("a", ""));
}

TEST(ServeAnswersTest, Base64HasPadding) {
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foobar"), "Zm9vYmFy");
  EXPECT_EQ(base64(std::string("\xff\xfe\xfd", 3)), "//79");
}

TEST(ServeAnswersTest, Base64IsReadAndRefused) {
  for (const std::string bytes : {"", "f", "fo", "foo", "foob", "\xff\xfe\xfd"})
    EXPECT_EQ(decode_base64(base64(bytes)), bytes);
  EXPECT_EQ(decode_base64("Zm8"), "fo");
  for (const char* text : {"Z", "Zm9*", "====", "Zm 8", "Zm8=Zm8="})
    EXPECT_EQ(decode_base64(text), std::nullopt) << text;
}

TEST(ServeAnswersTest, HeadersHaveOneLineOfAscii) {
  EXPECT_EQ(header_text("caf\xc3\xa9 \"a\"\r\nX: y"), R"(caf\u00e9 \"a\"\\r\\nX: y)");
  EXPECT_LT(header_text(std::string(5000, 'a')).size(), 600U);
}

TEST(ServeAnswersTest, AnEventIsOneLineOfData) {
  EXPECT_EQ(server_event("x", {{"a", "b\nc"}}), "event: x\ndata: {\"a\":\"b\\nc\"}\n\n");
}

}  // namespace
}  // namespace lamplighter

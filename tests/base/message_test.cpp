#include "base/message.h"

#include <gtest/gtest.h>

#include <string>

#include "base/utf8.h"

namespace lamplighter {
namespace {

using namespace std::string_literals;

TEST(Message, ValuesStayOnOneLine) {
  EXPECT_EQ(quote("a\nb\r\t"), "'a\\nb\\r\\t'");
  EXPECT_EQ(quote("a\0b"s), "'a\\x00b'");
  EXPECT_EQ(quote("\x1b[2J\x7f"), "'\\x1b[2J\\x7f'");
  EXPECT_EQ(quote("\u0085\u009b\u2028\u2029"), "'\\u0085\\u009b\\u2028\\u2029'");
  EXPECT_EQ(quote("a\u202Eb\u202A\u2066\u2069\u200E\u200F\u061C"),
            "'a\\u202eb\\u202a\\u2066\\u2069\\u200e\\u200f\\u061c'");
  EXPECT_EQ(quote("\u200D\u2065\u206A\u202F\u061B"), "'\u200D\u2065\u206A\u202F\u061B'");  // stay
  EXPECT_EQ(quote("\u200Ba\u00A0\uFEFF\u2060\u00AD"), "'\\u200ba\\u00a0\\ufeff\\u2060\\u00ad'");
  EXPECT_EQ(quote("d\u00e4mmerung \u732b"), "'d\u00e4mmerung \u732b'");
  EXPECT_EQ(quote("a\xff"), "'a\uFFFD'");
  EXPECT_EQ(quote(""), "''");
}

TEST(Message, LongValuesAreCutBetweenCodePoints) {
  EXPECT_EQ(quote(std::string(80, 'x')), "'" + std::string(80, 'x') + "'");
  EXPECT_EQ(quote(std::string(40000, 'x')), "'" + std::string(80, 'x') + "...'");
  EXPECT_EQ(quote(std::string(79, 'x') + "\u732b!"), "'" + std::string(79, 'x') + "...'");
}

TEST(Message, LongMessagesKeepTheirEnd) {
  EXPECT_EQ(one_line("two\nlines\0"s), "two\\nlines\\x00");
  const std::string usual(1500, 'x');
  EXPECT_EQ(one_line(usual), usual);
  std::string cats;
  for (int i = 0; i < 10000; ++i) cats += "\u732b";
  const std::string line = one_line("x" + cats + ", expected a dog");
  EXPECT_LT(line.size(), 1510U);
  EXPECT_EQ(find_invalid_utf8(line), std::string::npos);
  EXPECT_EQ(line.substr(line.size() - 16), ", expected a dog");
}

}  // namespace
}  // namespace lamplighter

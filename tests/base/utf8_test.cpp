#include "base/utf8.h"

#include <gtest/gtest.h>

namespace lamplighter {
namespace {

TEST(Utf8, FindsTheFirstIllFormedByte) {
  EXPECT_EQ(find_invalid_utf8(""), std::string::npos);
  EXPECT_EQ(find_invalid_utf8("a\u00e9\u20ac\U0001F600"), std::string::npos);
  EXPECT_EQ(find_invalid_utf8("ab\xff"), 2U);
  EXPECT_EQ(find_invalid_utf8("\xc0\x80"), 0U);          // overlong
  EXPECT_EQ(find_invalid_utf8("x\xe0\x80\x80"), 1U);     // overlong
  EXPECT_EQ(find_invalid_utf8("\xed\xa0\x80"), 0U);      // surrogate
  EXPECT_EQ(find_invalid_utf8("\xf4\x90\x80\x80"), 0U);  // above U+10FFFF
  EXPECT_EQ(find_invalid_utf8("\xe2\x82"), 0U);          // cut off
  EXPECT_EQ(find_invalid_utf8("\x80"), 0U);
}

TEST(Utf8, WhatMoreBytesMayCompleteIsNotWhole) {
  EXPECT_EQ(count_whole_utf8(""), 0U);
  EXPECT_EQ(count_whole_utf8("a\u00e9\u20ac\U0001F600"), 10U);
  EXPECT_EQ(count_whole_utf8("a\xc3"), 1U);
  EXPECT_EQ(count_whole_utf8("a\xe2\x82"), 1U);
  EXPECT_EQ(count_whole_utf8("a\xf0\x9f\x98"), 1U);
  EXPECT_EQ(count_whole_utf8("\xf0"), 0U);
  for (const char* text : {"a\xff", "a\x80", "a\xe0\x80", "a\xed\xa0", "a\xf5"})  // nothing completes these
    EXPECT_EQ(count_whole_utf8(text), std::string(text).size()) << text;
}

TEST(Utf8, ReplacesOnePartAtATime) {
  // Equals Python's bytes.decode("utf-8", "replace").
  EXPECT_EQ(decode_utf8("a\xe2\x82z"), U"a\uFFFDz");
  EXPECT_EQ(decode_utf8("\xf0\x9f\x98"), U"\uFFFD");
  EXPECT_EQ(decode_utf8("\xff\xfe"), U"\uFFFD\uFFFD");
  EXPECT_EQ(decode_utf8("\xed\xa0\x80"), U"\uFFFD\uFFFD\uFFFD");
}

TEST(Utf8, ComesBackForEveryCodePoint) {
  for (char32_t code = 0; code <= 0x10FFFF; ++code) {
    if (code >= 0xD800 && code <= 0xDFFF) continue;
    std::string bytes;
    append_utf8(bytes, code);
    ASSERT_EQ(decode_utf8(bytes), std::u32string(1, code));
  }
}

TEST(Utf8, ShortensBetweenCodePoints) {
  EXPECT_EQ(shorten("abc", 3), "abc");
  EXPECT_EQ(shorten("abcd", 3), "abc...");
  EXPECT_EQ(shorten("a\u20ac\u20ac", 3), "a...");
}

}  // namespace
}  // namespace lamplighter

#include "pipeline/output/name_pattern.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lamplighter/error.h"
#include "tests/error_of.h"

namespace lamplighter {
namespace {

using testing::HasSubstr;

const NameFields kFields{{"index", std::uint64_t{42}}, {"seed", ~std::uint64_t{0}}, {"id", "cat"}};

std::string rejected(const std::string& pattern) {
  return error_of(ExitCode::usage,
                  [&] { ADD_FAILURE() << pattern << " became " << expand_name("output", pattern, kFields); });
}

TEST(NamePattern, ExpandsFields) {
  EXPECT_EQ(expand_name("output", "{index:05d}.png", kFields), "00042.png");
  EXPECT_EQ(expand_name("output", "{index}_{id}_{seed}", kFields), "42_cat_18446744073709551615");
  EXPECT_EQ(expand_name("output", "{index:1d}{index:4d}", kFields), "42  42");
  EXPECT_EQ(expand_name("output", "%04d-%d-%20d", kFields), "0042-42-                  42");
  EXPECT_EQ(expand_name("output", "plain", kFields), "plain");
}

TEST(NamePattern, PercentSigns) {
  EXPECT_EQ(expand_name("output", "100%%", kFields), "100%");
  EXPECT_EQ(expand_name("output", "100% wool", kFields), "100% wool");
  EXPECT_EQ(expand_name("output", "%s%", kFields), "%s%");
  EXPECT_EQ(expand_name("output", "%%04d", kFields), "%04d");
}

TEST(NamePattern, RejectsWhatItCannotExpand) {
  EXPECT_THAT(rejected("{name}"), HasSubstr("got '{name}', expected {id}, {index} or {seed} between braces"));
  for (const char* open : {"{", "{}", "{index", "a{index:05d"}) EXPECT_THAT(rejected(open), HasSubstr(open));
  for (const char* width : {"{index:}", "{index:5}", "{index:d5}", "{index:5dd}", "{index:x}", "{index:-5d}",
                            "{id:05d}", "{index:99999d}"})
    EXPECT_THAT(rejected(width), HasSubstr("a width like {index:05d}")) << width;
  EXPECT_THAT(rejected("{index:21d}"), HasSubstr("up to 20"));
  EXPECT_THAT(rejected("%21d"), HasSubstr("up to 20"));
}

TEST(NamePattern, PlainNames) {
  for (const std::string& name :
       {std::string("a"), std::string("00042.png"), std::string("_x-1.b"), std::string(200, 'a')})
    EXPECT_TRUE(is_plain_name(name)) << name;
  for (const std::string& name :
       {std::string(), std::string("."), std::string(".."), std::string(".png"), std::string("-rf"),
        std::string("a/b"), std::string("a\\b"), std::string("a b"), std::string("a\n"),
        std::string("a\0b", 3), std::string("ü"), std::string(201, 'a')})
    EXPECT_FALSE(is_plain_name(name)) << name;
}

TEST(NamePattern, MakesNamesOfCaptions) {
  EXPECT_EQ(name_of_caption("A red boat, at sea!"), "a-red-boat-at-sea");
  EXPECT_EQ(name_of_caption("../etc/passwd"), "etc-passwd");
  EXPECT_EQ(name_of_caption(" \n{%d}.png "), "d-png");
  EXPECT_EQ(name_of_caption("\xC3\xA9t\xC3\xA9 \xE7\x8C\xAB"), "\xC3\xA9t\xC3\xA9-\xE7\x8C\xAB");
  EXPECT_EQ(name_of_caption(""), "image");
  EXPECT_EQ(name_of_caption("?!"), "image");
  EXPECT_EQ(name_of_caption(std::string(200, 'x')), std::string(80, 'x'));
  EXPECT_EQ(name_of_caption("x" + std::string(79, '-') + "\xE7\x8C\xAB"), "x-\xE7\x8C\xAB");
  // No letter is cut apart.
  EXPECT_EQ(name_of_caption(std::string(79, 'x') + "\xE7\x8C\xAB"), std::string(79, 'x'));
}

}  // namespace
}  // namespace lamplighter

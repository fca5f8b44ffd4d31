#include "base/invisible.h"

#include <gtest/gtest.h>

namespace lamplighter {
namespace {

TEST(Invisible, CharactersAreRemoved) {
  EXPECT_EQ(without_invisible("\uFEFF\u200Bpro\u00ADmpt\u200D\u2066"), "prompt");
  EXPECT_EQ(without_invisible("a\u00A0b\u3000c\u2009"), "a b c ");
  EXPECT_EQ(without_invisible("d\u00e4mmerung \u732b"), "d\u00e4mmerung \u732b");
}

}  // namespace
}  // namespace lamplighter

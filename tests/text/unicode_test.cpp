#include "text/unicode.h"

#include <gtest/gtest.h>

namespace lamplighter {
namespace {

TEST(Unicode, LowersAsPythonDoes) {
  EXPECT_EQ(to_lower(U"ABC \u00C4\u0178\u0141 \u0391\u03A9 \u0410\u042F\u0401 \u1E9E"),
            U"abc \u00E4\u00FF\u0142 \u03B1\u03C9 \u0430\u044F\u0451 \u00DF");
  EXPECT_EQ(to_lower(U"\u0130"), U"i\u0307");
  EXPECT_EQ(to_lower(U"\u0391\u03A3 \u03A3 \u0391\u03A3\u0391 \u0391'\u03A3."),
            U"\u03B1\u03C2 \u03C3 \u03B1\u03C3\u03B1 \u03B1'\u03C2.");
  EXPECT_EQ(to_lower(U"\U00010400"), U"\U00010428");
}

TEST(Unicode, KnowsClasses) {
  EXPECT_TRUE(is_word(U'a') && is_word(U'_') && is_word(U'\u00E9') && is_word(U'\u4E00') &&
              is_word(U'\u00B2'));
  EXPECT_FALSE(is_word(U'-') || is_word(U' ') || is_word(U'\u0301') || is_word(U'\u20AC'));
  EXPECT_TRUE(is_digit(U'7') && is_digit(U'\u0663') && is_digit(U'\uFF11'));
  EXPECT_FALSE(is_digit(U'\u00B2') || is_digit(U'\u00BD') || is_digit(U'a'));
  EXPECT_TRUE(is_space(U'\u00A0') && is_space(U'\u3000') && is_space(U'\x1F') && is_space(U'\u0085'));
  EXPECT_FALSE(is_space(U'\u200B') || is_space(U'\0'));
}

TEST(Unicode, Composes) {
  EXPECT_EQ(compose(U"e\u0301"), U"\u00E9");
  EXPECT_EQ(compose(U"\u212B"), U"\u00C5");               // singleton
  EXPECT_EQ(compose(U"a\u0307\u0323"), U"\u1EA1\u0307");  // marks are put in order first
  EXPECT_EQ(compose(U"\u0958"), U"\u0915\u093C");         // excluded from composition
  EXPECT_EQ(compose(U"\uAC00\u11A8"), U"\uAC01");
  EXPECT_EQ(compose(U"a\u0301\u0301"), U"\u00E1\u0301");
  EXPECT_EQ(compose(U"\u0301a"), U"\u0301a");
  EXPECT_EQ(compose(U"\u0344"), U"\u0308\u0301");
}

TEST(Unicode, UnifiesWidth) {
  EXPECT_EQ(unify_width(U"\uFF21\u3000\uFF76\uFFE3"), U"A \u30AB \u0304");
}

TEST(Unicode, FindsEntities) {
  EXPECT_EQ(find_entity("eacute;"), "\u00e9");
  EXPECT_EQ(find_entity("amp"), "&");
  EXPECT_EQ(find_entity("zwnj;"), "\u200c");
  EXPECT_EQ(find_entity("nothing;"), "");
}

}  // namespace
}  // namespace lamplighter

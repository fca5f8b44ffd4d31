#include "text/unread.h"

#include <gtest/gtest.h>

#include "base/utf8.h"
#include "text/cleaning.h"

namespace lamplighter {
namespace {

// What is quoted when the tokenizer reads up to the first "|" of a text, which it sees as the user wrote it.
std::string quoted(std::string text) {
  const std::size_t stop = text.find('|');
  text.erase(stop, 1);
  return unread_end(text, text, stop);
}

TEST(Unread, BeginsAtTheWordInWhichReadingStops) {
  EXPECT_EQ(quoted("a red| boat at dawn"), "boat at dawn");
  EXPECT_EQ(quoted("a red |boat at dawn"), "boat at dawn");
  EXPECT_EQ(quoted("a photo|graph of a boat "), "photograph of a boat");
  EXPECT_EQ(quoted("it's (half-|hidden) \u00e9t\u00e9"), "(half-hidden) \u00e9t\u00e9");
  EXPECT_EQ(quoted("|lighthouse"), "lighthouse");
  EXPECT_EQ(quoted("a dog|  "), "");
}

TEST(Unread, WordsWithoutEndAreQuotedFromWhereReadingStops) {
  const std::string word(41, 'a');
  EXPECT_EQ(quoted("see " + word + "|bc d"), "bc d");
  EXPECT_EQ(quoted(word + "e|\u0301c d"), "e\u0301c d");
  EXPECT_EQ(quoted("see " + word.substr(2) + "|bc d"), word.substr(2) + "bc d");
}

TEST(Unread, ScriptsWithoutSpacesAreQuotedFromTheirCharacter) {
  EXPECT_EQ(quoted("赤い船と|白い灯台"), "白い灯台");
  EXPECT_EQ(quoted("a boat 船|boat"), "boat");
  EXPECT_EQ(quoted("\u0e40\u0e23|\u0e37\u0e2d"),
            "\u0e23\u0e37\u0e2d");          // the vowel above stays with its letter
  EXPECT_EQ(quoted("빨간 배|경"), "배경");  // Korean has spaces
}

TEST(Unread, CharactersOfSeveralCodePointsStayWhole) {
  EXPECT_EQ(quoted("a cafe|\u0301 and"), "cafe\u0301 and");
  EXPECT_EQ(quoted("🎨|🚢 🌅"), "🚢 🌅");
  EXPECT_EQ(quoted("👩|\u200D👧 at sea"), "👩\u200D👧 at sea");  // joined
  EXPECT_EQ(quoted("👩\u200D|👧 at sea"), "👩\u200D👧 at sea");
  EXPECT_EQ(quoted("👋|\U0001F3FD and"), "👋\U0001F3FD and");  // a skin tone
}

TEST(Unread, CodePointsStayWhole) {
  const std::string text = "船と🚢";
  for (std::size_t read = 0; read <= text.size() + 1; ++read) {
    const std::string end = unread_end(text, text, read);
    EXPECT_EQ(find_invalid_utf8(end), std::string::npos) << read;
    EXPECT_EQ(end, read < 3 ? text : read < 6 ? "と🚢" : read < 10 ? "🚢" : "") << read;
  }
}

TEST(Unread, WordsAreTheUsersOwnWhereCleaningKeepsThem) {
  const auto cleaned = [](const std::string& caption, const std::string& cleaning, const char* stop) {
    const std::string seen = clean_text(caption, cleaning);
    return unread_end(caption, seen, seen.find(stop));
  };
  EXPECT_EQ(cleaned("  A Boat near Le Havre \n", "lower", "ar le"), "near Le Havre");
  EXPECT_EQ(cleaned("ΟΔΟΣ ΣΤΟ ΦΩΣ", "lower", "το"), "ΣΤΟ ΦΩΣ");  // the last sigma has a form of its own
  EXPECT_EQ(cleaned("A Boat near Le Havre", "llamagen", "ear"), "near Le Havre");
  // What cleaning removed or replaced cannot be quoted: the cleaned words are.
  EXPECT_EQ(cleaned("A Boat near <b>Le Havre</b>", "llamagen", "ear"), "near le havre");
  EXPECT_EQ(cleaned("An “Old” Boat | Etsy", "llamagen", "ld"), "\"old\" boat etsy");
}

}  // namespace
}  // namespace lamplighter

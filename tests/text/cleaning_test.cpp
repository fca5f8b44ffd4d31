#include "text/cleaning.h"

#include <gtest/gtest.h>

#include "base/utf8.h"
#include "lamplighter/error.h"
#include "tests/error_of.h"

namespace lamplighter {
namespace {

std::string clean(const std::string& text) {
  return clean_text(text, "llamagen");
}
std::string once(const std::string& text) {
  return encode_utf8(clean_caption(decode_utf8(text)));
}

// Expected texts come from LlamaGen's cleaning; the golden prompts cover it more widely.
TEST(CleanCaption, LeavesOrdinaryCaptionsAlone) {
  EXPECT_EQ(clean("A photo of two cats, by the sea"), "a photo of two cats, by the sea");
  EXPECT_EQ(clean(""), "");
  EXPECT_EQ(clean(" \t\n"), "");
}

TEST(CleanCaption, DropsAddressesAndFiles) {
  EXPECT_EQ(clean("see http://a.com now"), "see now");
  EXPECT_EQ(clean("mail someone@example.com please"), "mail someone please");
  EXPECT_EQ(clean("my.photo.jpg of a bear"), "of a bear");
  EXPECT_EQ(once("foo.com@bar"), "foo. com");
}

TEST(CleanCaption, ResolvesMarkup) {
  EXPECT_EQ(clean("<b>bold</b> &eacute; <!-- gone --> <br/>end"), "bold \u00e9 end");
  EXPECT_EQ(clean("<script>x = '<b>';</script>after"), "after");
  EXPECT_EQ(clean("<a href=\"x>y\" id='z'>link</a>"), "link");
  EXPECT_EQ(clean("1 < 2 and a <3"), "1 < 2 and a <3");
  EXPECT_EQ(clean("&#65;&#x42;&#150;c"), "ab-c");
}

TEST(CleanCaption, RepairsText) {
  EXPECT_EQ(clean("\uFB01ne \uFF21\uFF22"), "fine ab");
  EXPECT_EQ(clean("e\u0301"), "\u00e9");
  EXPECT_EQ(clean("a\u0323\u0307"), "\u1ea1\u0307");
  EXPECT_EQ(clean("\u1112\u1161\u11ab"), "\ud55c");
  EXPECT_EQ(clean("a\x1b[31mb\x07"), "a 31mb");
}

TEST(CleanCaption, DropsCodes) {
  EXPECT_EQ(clean("jc6640 6640vc231 ab12cd j2d1a2a dog"), "dog");
  EXPECT_EQ(clean("1920x1080 cat"), "cat");
  EXPECT_EQ(clean("page 12 free shipping download free"), "");
}

TEST(CleanCaption, IsQuickOnLongRuns) {
  EXPECT_EQ(clean(std::string(kMaxCaptionBytes, 'x')), std::string(kMaxCaptionBytes, 'x'));
  EXPECT_EQ(clean(std::string(kMaxCaptionBytes, ' ')), "");
  EXPECT_EQ(clean(std::string(kMaxCaptionBytes, '<')).size(), kMaxCaptionBytes);
}

// Captions that take a plain backtracking search quadratic or cubic time; their ends make the last match
// fail.
TEST(CleanCaption, LooksAtEveryCharacterAFewTimes) {
  constexpr std::size_t most = 500;  // steps per character: two runs of some 40 patterns
  for (const std::string part :
       {"1a1a1",      "a.",      "<a",      " ",         "</",      "<!--",
        "<![",        "<?",      "<a=\"",   "<a='",      "<a =\"'", "<script></script>",
        "<a\"b=\"",   "<rt>",    "</rt>",   "<![cdata[", "]] ",     "&#;",
        "<!---- ",    "<style>", "-",       "_",         "1.",      "#1",
        "@a",         "1:00 ",   "\x1b[1;", "1x",        "page 1",  "free ",
        "worldwide ", "&#1",     "&a",      "www.a",     "a@",      ".com/",
        "a.com@",     "1920x",   "%4",      " . ",       " : ",     "\u0301",
        "\u03a3'",    "1"}) {
    for (const std::string end : {"_", "\"", "x"}) {
      std::string caption = "a ";
      while (caption.size() < kMaxCaptionBytes / 4) caption += part;
      caption += end;
      std::size_t steps = 0;
      clean_text(caption, "llamagen", &steps);
      EXPECT_GT(steps, caption.size() / 4) << part << " ... " << end;
      EXPECT_LT(steps, most * caption.size()) << part << " ... " << end;
    }
  }
}

// A second run is skipped when the first changes nothing.
TEST(CleanText, RunsOnceWhereTheSecondRunChangesNothing) {
  const auto steps = [](const std::string& text) {
    std::size_t count = 0;
    clean_text(text, "llamagen", &count);
    return count;
  };
  std::size_t one_run = 0;
  clean_caption(U"two cats by the sea", &one_run);
  EXPECT_EQ(steps("two cats by the sea"), one_run);
  EXPECT_GT(steps("Two cats by the sea"), steps("two cats by the sea"));
}

TEST(CleanText, KnowsOtherKinds) {
  EXPECT_EQ(clean_text(" A  B ", "lower"), "a  b");
  EXPECT_EQ(clean_text(" A  B ", "none"), " A  B ");
  EXPECT_THROW(clean_text("a", "soap"), Error);
}

TEST(CheckCaption, RejectsWhatIsNoCaption) {
  check_caption("", "prompt 1");
  check_caption(std::string(kMaxCaptionBytes, 'x'), "prompt 1");
  EXPECT_THROW(check_caption(std::string(kMaxCaptionBytes + 1, 'x'), "prompt 1"), Error);
  EXPECT_EQ(error_of(ExitCode::input, [&] { check_caption("ab\xff", "prompt 1"); }),
            "prompt 1: byte 3 is not valid UTF-8");
}

}  // namespace
}  // namespace lamplighter

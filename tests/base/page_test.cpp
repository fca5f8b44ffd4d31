#include "base/page.h"

#include <gtest/gtest.h>

namespace lamplighter {
namespace {

TEST(Page, TextsOfScriptsCannotEndThem) {
  const Json json{{"a", "</script><!-- \"quoted\" \xf0\x9f\x8f\xae"}, {"b", "bad \xff"}};
  const std::string text = script_text(json);
  EXPECT_EQ(text.find('<'), std::string::npos);
  const Json back = parse_json(text, "page", ExitCode::input);
  EXPECT_EQ(back["a"], json["a"]);
  EXPECT_EQ(back["b"], "bad \xef\xbf\xbd");
}

TEST(Page, TextsOfElementsAreNoMarkup) {
  EXPECT_EQ(html_text("a<b> & 'c' \"d\""), "a&lt;b&gt; &amp; &#39;c&#39; &quot;d&quot;");
  EXPECT_EQ(html_text("\xf0\x9f\x8f\xae\xff"), "\xf0\x9f\x8f\xae\xef\xbf\xbd");
}

// The test vectors of RFC 4648, section 10.
TEST(Page, BytesAreBase64) {
  for (const auto& [bytes, text] : {std::pair{"", ""},
                                    {"f", "Zg=="},
                                    {"fo", "Zm8="},
                                    {"foo", "Zm9v"},
                                    {"foob", "Zm9vYg=="},
                                    {"fooba", "Zm9vYmE="},
                                    {"foobar", "Zm9vYmFy"}})
    EXPECT_EQ(png_source(bytes), std::string("data:image/png;base64,") + text);
  EXPECT_EQ(png_source("\xff\xfe\xfd"), "data:image/png;base64,//79");
}

TEST(Page, WhatIsFilledInIsNotSearched) {
  EXPECT_EQ(fill_page("<ONE> TWO ONCE", {{"TWO", "ONE ONE"}, {"ONE", "TWO"}}), "<TWO> ONE ONE ONCE");
}

}  // namespace
}  // namespace lamplighter

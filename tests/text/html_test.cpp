#include "text/html.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "base/utf8.h"

namespace lamplighter {
namespace {

using Pairs = std::vector<std::pair<std::u32string, std::u32string>>;

// Texts of BeautifulSoup 4.15 with the parser "html.parser" of Python 3.11.7.
void expect_texts(const Pairs& pairs) {
  for (const auto& [html, text] : pairs)
    EXPECT_EQ(encode_utf8(html_text(html)), encode_utf8(text)) << encode_utf8(html);
}

// A number needs a character behind it that is no hexadecimal figure; the second "&#" without one ends the
// markup.
TEST(HtmlText, ReadsReferencesAsPythonsParser) {
  expect_texts({
      {U"a&y", U"ay"},
      {U"a &yz", U"a &yz"},
      {U"a&y ", U"a&y "},
      {U"&#39e;", U"&#39e;"},
      {U"&#x41g;", U"Ag;"},
      {U"&# <b>x</b>", U"&# <b>x</b>"},
      {U"&#; <b>x</b>", U"&#; x"},
      {U"&#; &#; <b>x</b>", U"&#; &#; <b>x</b>"},
  });
}

TEST(HtmlText, KnowsSectionsAndComments) {
  expect_texts({
      {U"a<![cdata[b<c>]]>d", U"ab<c>d"},
      {U"<![cdata[b]] >c", U"bc"},
      {U"<![if x]>y<![endif]>z", U"yz"},
      {U"<!-- a -- >b", U"b"},
      {U"<!-- a --b", U"<!-- a --b"},
  });
}

TEST(HtmlText, LeavesOutScriptsAndAnnotations) {
  expect_texts({
      {U"<script\u3000>a", U"a"},
      {U"<script src=x/>a</script>b", U"b"},
      {U"<script/>a", U"a"},
      {U"<ruby>a<rt>b</rt>c</ruby>", U"ac"},
      {U"<b>a<rt>c</b>d", U"ad"},
      {U"a<template>b</template>c", U"ac"},
      {U"<rt>a</ rt>b", U"b"},
      {U"<rt>a</ rt x>b", U""},
      {U"<rt>a</rt x>b", U"b"},
      {U"<rt/>a", U"a"},
      {U"<rp>a<br>b</br>c</rp>d", U"d"},
  });
}

TEST(HtmlText, EndsTagsBehindBrokenAttributes) {
  expect_texts({
      {U"<a b=\"c>d", U"<a b=\"c>d"},
      {U"<a b= \"c>d", U"d"},
      {U"<a b ==\"c>d", U"d"},
      {U"<a b =\"c d>e", U"e"},
      {U"<a b='c>d'e>f", U"f"},
      {U"<a b/ >c", U"c"},
      {U"<a b=c/>d", U"d"},
      {U"<a //>b", U"b"},
      {U"<a \"b\">c", U"c"},
      {U"<a b=\"c\"d>e", U"e"},
      {U"<a =>b", U"b"},
  });
}

}  // namespace
}  // namespace lamplighter

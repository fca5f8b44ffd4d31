#include "text/prompt_syntax.h"

#include <gmock/gmock.h>

namespace lamplighter {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> examples_of(std::string_view caption) {
  PromptSyntax syntax;
  syntax.add(caption);
  return syntax.examples();
}

TEST(PromptSyntax, IsFoundInAnyPlace) {
  EXPECT_THAT(examples_of("a (red:1.3) boat"), ElementsAre("(red:1.3)"));
  EXPECT_THAT(examples_of("a (very red boat: .5 )"), ElementsAre("(very red boat: .5 )"));
  EXPECT_THAT(examples_of("<lora:add_detail:0.8> a boat"), ElementsAre("<lora:add_detail:0.8>"));
  EXPECT_THAT(examples_of("{red|blue|} boat"), ElementsAre("{red|blue|}"));
  EXPECT_THAT(examples_of("a {{red|blue} boat|x}"), ElementsAre("{red|blue}"));
  EXPECT_THAT(examples_of("__colour__ boat"), ElementsAre("__colour__"));
  EXPECT_THAT(examples_of("a __my_set/colour-2__"), ElementsAre("__my_set/colour-2__"));
  EXPECT_THAT(examples_of("a cat --ar 16:9 --v 5"), ElementsAre("--ar"));
  EXPECT_THAT(examples_of("--prompt=\"a\""), ElementsAre("--prompt"));
  EXPECT_THAT(examples_of("(a:1) <lyco:b:1> {c|d} __e__"),
              ElementsAre("(a:1)", "<lyco:b:1>", "{c|d}", "__e__"));
}

TEST(PromptSyntax, WeightsAreBracketsThatNest) {
  EXPECT_THAT(examples_of("((red)) boat"), ElementsAre("((red))"));
  EXPECT_THAT(examples_of("(((8k)))"), ElementsAre("((8k))"));
  EXPECT_THAT(examples_of("a (boat (of wood):1.2)"), ElementsAre("(boat (of wood):1.2)"));
  EXPECT_THAT(examples_of("((\u0446\u0432\u0435\u0442))"), ElementsAre("((\u0446\u0432\u0435\u0442))"));
  EXPECT_THAT(examples_of("(fog : -0.5)"), ElementsAre("(fog : -0.5)"));
  EXPECT_THAT(examples_of(R"(\((red:1.3)\))"), ElementsAre("(red:1.3)"));
  EXPECT_THAT(examples_of("a [blurry] boat"), ElementsAre("[blurry]"));
  EXPECT_THAT(examples_of("[[blurry sea]], x"), ElementsAre("[blurry sea]"));
  EXPECT_THAT(examples_of("[red|blue] [a:b:0.5]"), ElementsAre("[red|blue]"));
  for (const char* text : {"a sign (red)",
                           "a clock (10:30)",
                           "a film (16:9)",
                           R"(\(red:1.3\))",
                           R"(\(\(red\)\))",
                           "((1 + 2) * 3)",
                           "((1 + 2))",
                           "((red) boat)",
                           "(())",
                           "(red:)",
                           "((",
                           "))",
                           "([red)]",
                           "a boat [1]",
                           "[2, 3] boats",
                           "a photo of [V] dog",
                           "[Name], [MASK]",
                           "a bote [sic]",
                           "array[index]",
                           "[here](b.txt)",
                           "[\"a\", \"b\"]",
                           "[x]",
                           "[ ]",
                           "[]",
                           "[a=b]"}) {
    EXPECT_THAT(examples_of(text), IsEmpty()) << text;
  }
}

TEST(PromptSyntax, ABreakIsAWordOfItsOwn) {
  for (const char* text : {"a red cat BREAK a blue dog", "a cat, BREAK, a dog", "a cat\nBREAK\na dog",
                           "best, HDR, BREAK a dog", "BREAK a dog", "a cat BREAK"}) {
    EXPECT_THAT(examples_of(text), ElementsAre("BREAK")) << text;
  }
  for (const char* text :
       {"a coffee break", "Break the ice", "a sign \"BREAK\"", "COFFEE BREAK", "DO NOT BREAK it",
        "BREAK THE ICE", "a BREAKing wave", "BREAK", "a DAYBREAK, b", "BREAK-IN"}) {
    EXPECT_THAT(examples_of(text), IsEmpty()) << text;
  }
}

TEST(PromptSyntax, JoinsPromptsAndRegions) {
  EXPECT_THAT(examples_of("a red cat AND a blue dog"), ElementsAre("AND"));
  EXPECT_THAT(examples_of("a cat, AND\na dog"), ElementsAre("AND"));
  EXPECT_THAT(examples_of("a sea ADDCOL a shore"), ElementsAre("ADDCOL"));
  for (const char* text : {"a cat and a dog", "SALT AND PEPPER", "a sign \"ROCK AND ROLL\"", "BRANDY", "AND",
                           "a cat And a dog", "R-AND-B"}) {
    EXPECT_THAT(examples_of(text), IsEmpty()) << text;
  }
}

TEST(PromptSyntax, NamesEmbeddings) {
  EXPECT_THAT(examples_of("a cat, embedding:bad-hands_v2.pt"), ElementsAre("embedding:bad-hands_v2.pt"));
  EXPECT_THAT(examples_of("embedding:x"), ElementsAre("embedding:x"));
  for (const char* text : {"embedding: a jewel in gold", "an embedding", "embedding:", "re-embedding:x"})
    EXPECT_THAT(examples_of(text), IsEmpty()) << text;
}

TEST(PromptSyntax, WeightsStandBehindWordsAndBrackets) {
  EXPECT_THAT(examples_of("a red+++ boat"), ElementsAre("red+++"));
  EXPECT_THAT(examples_of("a boat, fog---"), ElementsAre("fog---"));
  EXPECT_THAT(examples_of("a red++, boat"), ElementsAre("red++"));
  EXPECT_THAT(examples_of("a (red)1.3 boat"), ElementsAre("(red)1.3"));
  EXPECT_THAT(examples_of("(old red boat)0.6"), ElementsAre("(old red boat)0.6"));
  EXPECT_THAT(examples_of("a (red)++ boat"), ElementsAre("(red)++"));
  EXPECT_THAT(examples_of("a (red)-- boat"), ElementsAre("(red)--"));
  EXPECT_THAT(examples_of("(\"a cat\", \"a dog\").and()"), ElementsAre("(\"a cat\", \"a dog\").and()"));
  EXPECT_THAT(examples_of("{{red}} boat"), ElementsAre("{{red}}"));
  EXPECT_THAT(examples_of("hot::2 dog::-1"), ElementsAre("hot::2"));
  EXPECT_THAT(examples_of("1.5::red boat::"), ElementsAre("boat::"));
  for (const char* text : {"a C++ book",   "g++ and notepad", "Notepad++",      "a cat---red---sleeps",
                           "a cat -- red", "A+++ rated",      "iron Ca(OH)2.5", "f(x)1.5",
                           "a boat (red)", "(a) 1.3",         "(1)1.5",         "(red)-haired",
                           "std::vector",  "10::30",          "a :: b",         "{{}}",
                           "{{1}}",        "1 + 1",           "dogs-",          "cats+",
                           "(see)1."}) {
    EXPECT_THAT(examples_of(text), IsEmpty()) << text;
  }
}

TEST(PromptSyntax, IsOfDocumentsToo) {
  for (const char* text :
       {"- a cat", "1. a cat", "\u2022 a cat", "\"a cat\"", "'a cat'", "\u201Ca cat\u201D", "`a cat`"})
    EXPECT_THAT(examples_of(text), ElementsAre(text));
  EXPECT_THAT(examples_of("a cat<br/>on a mat"), ElementsAre("<br/>"));
  EXPECT_THAT(examples_of("<b>a cat</b>"), ElementsAre("</b>"));
  EXPECT_THAT(examples_of("a **red** cat"), ElementsAre("**red**"));
  EXPECT_THAT(examples_of("a [red cat](https://a.b/c) here"), ElementsAre("[red cat](https://a.b/c)"));
  for (const char* text : {"\"STOP\" and \"GO\"", "3 cats", "2 ** 3 ** 4", "a < b > c", "it's",
                           "'tis a cat's tail", "\"\"", "A. Einstein", "<3", "</", "**", "****"}) {
    EXPECT_THAT(examples_of(text), IsEmpty()) << text;
  }
}

TEST(PromptSyntax, IsNotSeenInPlainText) {
  for (const char* text :
       {"a clock at 10:30 (late)", "ratio (16:9", "(see: 3 boats)", "x <b> y", "{one}", "a | b", "} a | b {",
        "snake__case", "____", "__ a __", "(:1)", "", "a--b", "a -- b", "a --3", "--", "a --b/c"}) {
    EXPECT_THAT(examples_of(text), IsEmpty()) << text;
  }
}

TEST(PromptSyntax, IsReportedOnceARun) {
  PromptSyntax syntax;
  syntax.add("a boat");
  EXPECT_EQ(syntax.note(), "");
  syntax.add("a (red:1.3) boat");
  syntax.add("a (blue:1.4) {a|b}");
  const std::string note = syntax.note();
  EXPECT_THAT(note, HasSubstr("(red:1.3), {a|b}:"));
  syntax.add("__x__");
  EXPECT_EQ(syntax.note(), "");
}

// Every search is linear in the length of a caption.
TEST(PromptSyntax, ReadsLongCaptions) {
  for (const char* piece :
       {":",        "|",   "_",     "{",      "(",    ":1)", "{|",  "__ ",        "<lora:", " --", " --a!",
        "((",       "((1", "[aa",   " BREAK", "<a",   "</",  "**a", "](http",     "[",      "- ",  "'",
        "BREAK A ", "\\(", "aaa++", "a::",    "(a)+", "{{",  "{{a", "embedding:", " AND A"}) {
    std::string text;
    while (text.size() < 1'000'000) text += piece;
    examples_of(text);
    examples_of(text + '"' + std::string(500'000, ')'));
    examples_of(text + '"' + std::string(500'000, ']'));
  }
}

}  // namespace
}  // namespace lamplighter

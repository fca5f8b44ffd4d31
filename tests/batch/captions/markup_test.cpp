#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/batch/caption_sets.h"

// Texts as documents, chats, databases and programs write them.
namespace lamplighter {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Captions read(std::string_view bytes, const std::string& name = "c.md", const std::string& column = "") {
  return parse_captions(bytes, name, "auto", column);
}

TEST(MarkdownTables, AreTables) {
  const Captions captions =
      read("# Prompts\n\n| **Prompt** | seed |\n|:---|---:|\n| a cat \\| dog | 3 |\n|b||\n# none\n");
  EXPECT_THAT(prompts(captions), ElementsAre("a cat | dog", "b"));
  EXPECT_EQ(captions[0].seed, 3U);
  EXPECT_FALSE(captions[1].seed);
  EXPECT_EQ(captions[0].where, "c.md line 5");
  EXPECT_THAT(prompts(read("prompt | note\n--- | ---\na | x\n", "c.txt")), ElementsAre("a"));
  EXPECT_THAT(prompts(read("| Prompt |\r\n|-|\r\n| a |\r\n")), ElementsAre("a"));
  EXPECT_THAT(prompts(read("| id | scene |\n|---|---|\n| 1 | a |\n", "c", "Scene")), ElementsAre("a"));
}

TEST(DatabaseTables, AreTables) {
  const Captions captions =
      read("  prompt  | seed \n----------+------\n a cat    |    3\n a dog    |    4\n(2 rows)\n\n", "c.txt");
  EXPECT_THAT(prompts(captions), ElementsAre("a cat", "a dog"));
  EXPECT_EQ(captions[1].seed, 4U);
}

TEST(TablesWithBars, NeedNoRule) {
  EXPECT_THAT(prompts(read("| prompt | seed |\n| a, b | 3 |\n")), ElementsAre("a, b"));
  EXPECT_EQ(read("prompt | seed\na cat | 3\n", "c.txt")[0].seed, 3U);
}

TEST(MarkdownTables, AreRefusedWithWhatIsAroundThem) {
  const std::string table = "| prompt |\n|---|\n| a |\n";
  EXPECT_THAT(message_of([&] { read("My prompts:\n\n" + table); }),
              HasSubstr("c.md line 3: got '| prompt |'"));
  EXPECT_THAT(message_of([&] { read(table + "\nThe end.\n"); }),
              HasSubstr("c.md line 5: got The end. behind"));
  EXPECT_THAT(message_of([&] { read(table + "\n" + table); }),
              HasSubstr("line 6: got |---|, expected one table"));
  EXPECT_THAT(message_of([] { read("| id | scene |\n|---|---|\n| 1 | a |\n"); }),
              HasSubstr("line 1: got no column of prompts among id, scene"));
  EXPECT_THAT(message_of([] { read("| id | prompt |\n|---|---|\n| 1 | a | b |\n"); }),
              HasSubstr("line 3: got 3 columns, expected 2"));
  EXPECT_THAT(message_of([] { read("+----+\n| prompt |\n+----+\n"); }), HasSubstr("a line of a table"));
}

TEST(Lists, AreRefused) {
  for (const char* text :
       {"- a cat\n- a dog\n", "- a cat\n", "* a cat\n\n* a dog\n", "> a cat\n> a dog\n",
        "1. a cat\n2. a dog\n", "1) a cat\n2) a dog\n", "1. a cat\n1. a dog\n", "1. a cat\n",
        "a) a cat\nb) a dog\n", "1\ta cat\n2\ta dog\n", "\u2022 a cat\n\u2022 a dog\n",
        "- prompt: a cat\n  seed: 3\n- prompt: a dog\n  seed: 4\n", "- cats\n  - a red cat\n"}) {
    EXPECT_THAT(message_of([&] { read(text); }), HasSubstr("c.md line 1: got '")) << text;
    EXPECT_THAT(message_of([&] { read(text); }), HasSubstr("an item of a list, expected a caption")) << text;
  }
  EXPECT_THAT(message_of([] { read("Here are prompts:\n\n1. A cat\n2. A dog\n"); }),
              HasSubstr("line 3: got '1. A"));
}

// One line with a number may be a caption; the note on marks names it.
TEST(Lists, HaveMoreThanOneItem) {
  EXPECT_EQ(read("a cat\n1. FC K\u00f6ln\na dog\n").size(), 3U);
  EXPECT_EQ(read("A. Einstein\nM. Curie\n").size(), 2U);
  EXPECT_EQ(read("3 dogs\n4 cats\n-5 degrees\n").size(), 3U);
  EXPECT_EQ(parse_captions("- a\n- b\n| c |\n", "c", "text").size(), 3U);
}

TEST(LinesOfDocuments, AreRefused) {
  for (const char* line : {"---",
                           "```",
                           "~~~python",
                           "<li>a cat</li>",
                           "</ul>",
                           "<img src=\"a.png\">",
                           "// cats",
                           "<!-- cats -->",
                           "\\item a",
                           "|---|---|",
                           "\u2502 a \u2502",
                           "['a cat', 'a dog']",
                           "[",
                           "],",
                           "},",
                           "(\"a\", \"b\")",
                           "\"a cat\",",
                           "'a cat',",
                           "\"prompt\": \"a cat\"",
                           "{'prompt': 'a cat'}",
                           "[\"a\", \"b\"] x",
                           "prompts = [\"a\"]",
                           "NAMES=(",
                           "prompt: a cat",
                           "Prompt 3: a cat",
                           "captions:",
                           "prompt = a cat",
                           "seed: 3",
                           "steps=20"}) {
    EXPECT_THAT(message_of([&] { read(std::string("a cat\n") + line + "\n"); }),
                HasSubstr("c.md line 2: got '"))
        << line;
  }
}

TEST(LinesOfDocuments, ResembleCaptions) {
  for (const char* line :
       {"[1girl, solo]", "\"G O\" sprayed on a wall", "a boat: red", "(red) boat", "<3 cats", "*sparkle* cat",
        "A sign: \"STOP\"", "x = y + 2 on a board", "Text: hello", "seed: a small plant", "width of a river",
        "<lora:a:1> cat", "\"STOP\", says a sign", "(\"Hi\") on a wall", "a prompt: b", "...", "?!", "!",
        "(a|b)"})
    EXPECT_THAT(prompts(read(std::string(line) + "\na dog\n", "c.txt")), ElementsAre(line, "a dog"));
}

TEST(Files, HaveNamesOfOtherKinds) {
  for (const char* name : {"c.yaml", "c.INI", "c.html", "c.py", "c.tex"})
    EXPECT_THAT(message_of([&] { read("a cat\n", name); }), HasSubstr(std::string(name) + ": got a file of "))
        << name;
  EXPECT_THAT(message_of([] { read("{\\rtf1\\ansi a cat}\n"); }), HasSubstr("rich text"));
}

// Copied tables have blanks and marks that nobody sees in the names of their columns.
TEST(Names, MayHaveInvisibleCharacters) {
  for (const char* name :
       {"\u200Bprompt", "prompt\u00A0", "\uFEFFprompt", "pro\u00ADmpt", "\u3000Prompt\u200D"}) {
    EXPECT_EQ(read(std::string(name) + ",se\u200Bed\na,3\n", "c.csv")[0].seed, 3U) << name;
    EXPECT_EQ(prompts(read("[{\"" + std::string(name) + "\": \"a\"}]")).size(), 1U) << name;
  }
  EXPECT_THAT(message_of([] { read("\u200Bscene,note\u00A0x\na,b\n", "c.csv"); }),
              HasSubstr("among \\u200bscene, note\\u00a0x, expected"));
}

TEST(Columns, AreNamedWhenOneIsMissing) {
  EXPECT_THAT(message_of([] { read("prompt,seed\na,3\n", "c.csv", "1"); }),
              HasSubstr("line 1: got no column '1' among prompt, seed"));
  EXPECT_THAT(message_of([] { read(R"([{"prompt": "a", "seed": 3}])", "c", "1"); }),
              HasSubstr("got no field '1', which --column names, among prompt, seed"));
}

}  // namespace
}  // namespace lamplighter

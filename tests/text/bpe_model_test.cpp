#include "text/bpe_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "lamplighter/error.h"
#include "tests/error_of.h"
#include "tests/text/bpe_file.h"

namespace lamplighter {
namespace {

using Ids = std::vector<std::int64_t>;
using nlohmann::json;
using testing::HasSubstr;

Ids encode(const BpeModel& model, const std::string& piece) {
  Ids ids;
  model.encode(piece, ids);
  return ids;
}

std::string message(const json& vocabulary, const json& merges) {
  return error_of(ExitCode::bundle, [&] { BpeModel(vocabulary, merges, "file.json"); });
}

TEST(BpeModel, StandsBytesForCharacters) {
  EXPECT_EQ(byte_character('A'), U'A');
  EXPECT_EQ(byte_character(0), U'\u0100');
  EXPECT_EQ(byte_character(' '), U'\u0120');
  EXPECT_EQ(byte_character(0x7F), U'\u0121');
  EXPECT_EQ(byte_character(0xAD), U'\u0143');
  EXPECT_EQ(byte_character(0xE9), U'\u00E9');
  EXPECT_EQ(entry_bytes("\u0120a\u010A"), " a\n");
  EXPECT_EQ(entry_bytes("\u00E9"), "\xE9");
  EXPECT_EQ(entry_bytes("two words"), "two words");  // a space stands for no byte
}

TEST(BpeModel, MergesTheLowestRankFirst) {
  const std::vector<std::string> merges = {"b c", "a b", "a bc", "ab ab"};
  const BpeModel model(make_vocabulary(merges), merges, "");
  EXPECT_EQ(encode(model, "abc"), Ids{258});
  EXPECT_EQ(encode(model, "ab"), Ids{257});
  EXPECT_EQ(encode(model, "abababc"), (Ids{259, 258}));
  EXPECT_EQ(encode(model, "ababab"), (Ids{259, 257}));  // from the left
  EXPECT_EQ(encode(model, "\xFF"), Ids{255});
  EXPECT_EQ(encode(model, ""), Ids{});
}

// Random merges over three letters against the definition: repeatedly merge the leftmost pair of lowest rank.
TEST(BpeModel, AgreesWithTheDefinition) {
  std::mt19937 generator(3);
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<std::string> entries = {"a", "b", "c"}, merges;
    std::map<std::pair<std::string, std::string>, std::size_t> ranks;
    while (merges.size() < 12) {
      const std::string left = entries[generator() % entries.size()],
                        right = entries[generator() % entries.size()];
      if (!ranks.emplace(std::pair(left, right), merges.size()).second) continue;
      merges.push_back(left + " " + right);
      entries.push_back(left + right);
    }
    const json vocabulary = make_vocabulary(merges);
    std::string piece;
    std::vector<std::string> parts;
    for (std::size_t length = generator() % 60; piece.size() < length; piece += parts.back()) {
      parts.emplace_back(1, "abc"[generator() % 3]);
    }
    for (;;) {
      std::size_t position = 0, rank = merges.size();
      for (std::size_t at = 0; at + 1 < parts.size(); ++at) {
        const auto found = ranks.find({parts[at], parts[at + 1]});
        if (found != ranks.end() && found->second < rank) rank = found->second, position = at;
      }
      if (rank == merges.size()) break;
      parts[position] += parts[position + 1];
      parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(position) + 1);
    }
    Ids expected;
    for (const std::string& part : parts) expected.push_back(vocabulary[part].get<std::int64_t>());
    EXPECT_EQ(encode(BpeModel(vocabulary, merges, ""), piece), expected) << piece;
  }
}

TEST(BpeModel, MergesAPieceAsLongAsABook) {
  const std::vector<std::string> merges = {"a a", "aa aa", "aaaa aaaa"};
  const BpeModel model(make_vocabulary(merges), merges, "");
  EXPECT_EQ(encode(model, std::string(1 << 20, 'a')), Ids(1 << 17, 258));
}

TEST(BpeModel, TakesPiecesThatAreEntriesWhole) {
  const std::vector<std::string> merges = {"b c", "a b", "ab c"};  // abc is out of the merges' reach
  const json vocabulary = make_vocabulary(merges);
  EXPECT_EQ(encode(BpeModel(vocabulary, merges, ""), "abc"), (Ids{'a', 256}));
  const BpeModel whole(vocabulary, merges, "", true);
  EXPECT_EQ(encode(whole, "abc"), Ids{258});
  EXPECT_EQ(encode(whole, "abca"), (Ids{'a', 256, 'a'}));
}

TEST(BpeModel, ReadsBothKindsOfMerges) {
  const std::vector<std::string> merges = {"a b", "ab c"};
  const json pairs = json::parse(R"([["a", "b"], ["ab", "c"]])");
  EXPECT_EQ(encode(BpeModel(make_vocabulary(merges), pairs, ""), "abc"), Ids{257});
  const json versioned = {"#version: 0.2", "a b", "ab c"};
  EXPECT_EQ(encode(BpeModel(make_vocabulary(merges), versioned, ""), "abc"), Ids{257});
}

TEST(BpeModel, RefusesBrokenTables) {
  json vocabulary = make_vocabulary({"a b"});
  EXPECT_THAT(message(vocabulary, {"a b c"}),
              HasSubstr("file.json: model.merges[0]: got \"a b c\", expected"));
  EXPECT_THAT(message(vocabulary, {"a b", 3}), HasSubstr("model.merges[1]: got 3"));
  EXPECT_THAT(message(vocabulary, json::parse(R"([["a", ""]])")),
              HasSubstr("model.merges[0]: got [\"a\",\"\"]"));
  EXPECT_THAT(message(vocabulary, {"a c"}), HasSubstr("model.merges[0]: \"ac\" is not in the vocabulary"));
  EXPECT_THAT(message(vocabulary, {"zz b"}), HasSubstr("model.merges[0]: \"zz\" is not in the vocabulary"));
  EXPECT_THAT(message(vocabulary, nullptr), HasSubstr("model.merges: expected an array"));
  EXPECT_THAT(message(nullptr, json::array()), HasSubstr("model.vocab: expected an object"));
  for (const json& id : {json(-1), json("7"), json(1.5), json(1 << 24)}) {
    vocabulary["ab"] = id;
    EXPECT_THAT(message(vocabulary, json::array()), HasSubstr("id of \"ab\": got " + id.dump()));
  }
  vocabulary["ab"] = 65;
  EXPECT_THAT(message(vocabulary, json::array()), HasSubstr("id 65 belongs to another text"));
  vocabulary.erase("ab");
  for (const char* never : {"\u00C0", "\u00C1", "\u00F5", "\u00FF"}) vocabulary.erase(never);
  EXPECT_EQ(message(vocabulary, json::array()), "");  // bytes that UTF-8 does not have
  vocabulary.erase("\u0120");
  EXPECT_THAT(message(vocabulary, json::array()), HasSubstr("no entry \"\u0120\" for byte 32"));
}

}  // namespace
}  // namespace lamplighter

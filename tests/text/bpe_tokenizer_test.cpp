#include "text/bpe_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lamplighter/error.h"
#include "tests/error_of.h"
#include "tests/text/bpe_file.h"

namespace lamplighter {
namespace {

using Ids = std::vector<std::int64_t>;
using nlohmann::json;
using testing::HasSubstr;

const std::vector<std::string> kMerges = {"a b", "\u0120 ab"};  // 256, 257; <end> is 258

BpeTokenizer load(const json& file) {
  return BpeTokenizer(BpeFile(file).path());
}

std::string message(const BpeFile& file) {
  return error_of(ExitCode::bundle, [&] { const BpeTokenizer tokenizer(file.path()); });
}

// Message of the error for a file with one changed value.
std::string message(const char* pointer, const json& value) {
  json file = make_tokenizer(kMerges);
  file[json::json_pointer(pointer)] = value;
  return message(BpeFile(file));
}

json added(const std::string& text, std::int64_t id, bool normalized, bool special) {
  json token = make_tokenizer({})["added_tokens"][0];
  token["content"] = text, token["id"] = id, token["normalized"] = normalized, token["special"] = special;
  return token;
}

TEST(BpeTokenizer, EncodesAndDecodes) {
  const BpeTokenizer tokenizer = load(make_tokenizer(kMerges));
  EXPECT_EQ(tokenizer.size(), 259);
  EXPECT_EQ(tokenizer.encode(""), Ids{});
  EXPECT_EQ(tokenizer.encode("ab ab<end>b"), (Ids{256, 257, 258, 'b'}));
  EXPECT_EQ(tokenizer.encode("<end"), (Ids{'<', 'e', 'n', 'd'}));
  EXPECT_EQ(tokenizer.encode("\xC3\xA9"), (Ids{0xC3, 0xA9}));
  EXPECT_EQ(tokenizer.decode({256, 257, 258, 'b'}), "ab ab<end>b");
  EXPECT_EQ(tokenizer.decode({256, 257, 258, 'b'}, true), "ab abb");
  EXPECT_EQ(tokenizer.decode({0xC3, 258, 0xA9}, true), "\u00E9");  // joined before it is read as UTF-8
  EXPECT_EQ(tokenizer.decode({0xC3, 258, 0xA9}), "\uFFFD<end>\uFFFD");
  EXPECT_EQ(tokenizer.decode({-1, 'a', 259, 1 << 20}), "a");
  EXPECT_EQ(tokenizer.find("\u0120ab"), 257);
  EXPECT_EQ(tokenizer.find("<end>"), 258);
  EXPECT_EQ(tokenizer.find("abc"), std::nullopt);
}

// Ids stand for bytes of the text, so that the first ones say how far they reach.
TEST(BpeTokenizer, BytesOfIdsAreTheText) {
  json file = make_tokenizer(kMerges);
  file["normalizer"] = {{"type", "NFC"}};
  const BpeTokenizer tokenizer = load(file);
  const std::string text = "ab ab<end> 船🚢 \u00E9", split = "ab ab<end> 船🚢 e\u0301";
  const Ids ids = tokenizer.encode(split);
  EXPECT_EQ(tokenizer.bytes(ids), text);
  EXPECT_EQ(tokenizer.bytes({ids.begin(), ids.begin() + 2}), "ab ab");
  std::size_t length = 0;
  for (const std::int64_t id : ids) length += tokenizer.bytes({id}).size();
  EXPECT_EQ(length, text.size());
  EXPECT_EQ(tokenizer.bytes({0xE8, -1, 259}), "\xE8");  // part of a character, no ids
}

TEST(BpeTokenizer, ReplacesEveryIllFormedPart) {
  const BpeTokenizer tokenizer = load(make_tokenizer(kMerges));
  const auto same = [&](const char* bytes, const char* text) {
    EXPECT_EQ(tokenizer.encode(bytes), tokenizer.encode(text)) << text;
  };
  same("ab\xFF", "ab\uFFFD");
  same("\xF0\x9F\x98-", "\uFFFD-");                // truncated character
  same("\xED\xA0\x80", "\uFFFD\uFFFD\uFFFD");      // surrogate
  same("\xC0\xAF\xE2\x82", "\uFFFD\uFFFD\uFFFD");  // overlong form, truncated character
}

TEST(BpeTokenizer, FindsTheLongestAddedTokenThatBeginsFirst) {
  json file = make_tokenizer(kMerges);
  json& tokens = file["added_tokens"];
  tokens.push_back(added("<end><end>", 259, false, true));
  tokens.push_back(added("nd>a", 260, false, false));
  tokens.push_back(added("\u00E9 b", 261, false, false));
  tokens.push_back(added(">ab", 262, true, false));  // searched after all others
  tokens.push_back(added("ab", 256, false, false));  // in the vocabulary
  const BpeTokenizer tokenizer = load(file);
  EXPECT_EQ(tokenizer.size(), 263);
  EXPECT_EQ(tokenizer.encode("<end><end><end>"), (Ids{259, 258}));
  EXPECT_EQ(tokenizer.encode("<end>a"), (Ids{258, 'a'}));
  EXPECT_EQ(tokenizer.encode("end>a"), (Ids{'e', 260}));
  EXPECT_EQ(tokenizer.encode("x\u00E9 b"), (Ids{'x', 261}));
  EXPECT_EQ(tokenizer.encode(">ab"), (Ids{'>', 256}));
  EXPECT_EQ(tokenizer.decode({261, 259}), "\u00E9 b<end><end>");
  EXPECT_EQ(tokenizer.decode({261, 259}, true), "\u00E9 b");
  tokens.erase(5);
  EXPECT_EQ(load(file).encode(">ab"), Ids{262});
}

TEST(BpeTokenizer, RefusesWhatItDoesNotDo) {
  EXPECT_EQ(message("/version", "2"), "");
  EXPECT_EQ(message("/post_processor", {{"type", "TemplateProcessing"}}), "");
  EXPECT_THAT(message("/normalizer", {{"type", "NFKC"}}),
              HasSubstr("normalizer.type: got \"NFKC\", expected one of NFC, Sequence"));
  EXPECT_EQ(message("/normalizer", {{"type", "NFC"}}), "");
  EXPECT_EQ(message("/normalizer", {{"type", "Sequence"}, {"normalizers", nlohmann::json::array()}}), "");
  EXPECT_EQ(message("/normalizer", {{"type", "Sequence"}, {"normalizers", {{{"type", "NFC"}}}}}), "");
  EXPECT_THAT(message("/normalizer", {{"type", "Sequence"}, {"normalizers", {{{"type", "Lowercase"}}}}}),
              HasSubstr("normalizers[0].type: got \"Lowercase\""));
  EXPECT_THAT(message("/truncation", {{"max_length", 8}}), HasSubstr("truncation: got"));
  EXPECT_THAT(message("/padding", {{"pad_id", 1}}), HasSubstr("padding: got"));
  EXPECT_THAT(message("/decoder", nullptr), HasSubstr("decoder: got null, expected a JSON object"));
  EXPECT_THAT(message("/decoder", {{"type", "Metaspace"}}), HasSubstr("decoder.type: got \"Metaspace\""));
  EXPECT_THAT(message("/pre_tokenizer", nullptr), HasSubstr("pre_tokenizer: got null"));
  EXPECT_THAT(message("/model", nullptr), HasSubstr("model: got null"));
  EXPECT_THAT(message("/model/type", "Unigram"), HasSubstr("model.type: got \"Unigram\""));
  EXPECT_EQ(message("/model/dropout", 0.0), "");
  EXPECT_THAT(message("/model/dropout", 0.1), HasSubstr("model.dropout: got 0.1, expected null"));
  EXPECT_EQ(message("/model/end_of_word_suffix", ""), "");
  EXPECT_THAT(message("/model/end_of_word_suffix", "</w>"), HasSubstr("model.end_of_word_suffix: got"));
  EXPECT_THAT(message("/model/continuing_subword_prefix", "##"), HasSubstr("continuing_subword_prefix: got"));
  EXPECT_EQ(message("/model/ignore_merges", true), "");
  EXPECT_THAT(message("/model/vocab", nullptr), HasSubstr("model.vocab: expected an object"));
  EXPECT_THAT(message("/model/more", 1), HasSubstr("unknown field model.more"));
  EXPECT_THAT(message("/more", 1), HasSubstr("unknown field more"));
}

TEST(BpeTokenizer, RefusesAddedTokensThatItDoesNotDo) {
  EXPECT_THAT(message("/added_tokens", 1), HasSubstr("added_tokens: got 1, expected an array"));
  for (const char* flag : {"single_word", "lstrip", "rstrip"}) {
    EXPECT_THAT(message((std::string("/added_tokens/0/") + flag).c_str(), true),
                HasSubstr(std::string("added_tokens[0].") + flag + ": got true, expected false"));
  }
  EXPECT_THAT(message("/added_tokens/0/content", ""), HasSubstr("content: got \"\""));
  EXPECT_THAT(message("/added_tokens/0/id", 7), HasSubstr("id: got 7, expected 258 as in the vocabulary"));
  EXPECT_THAT(message("/added_tokens/1", added("<new>", 300, false, true)),
              HasSubstr("added_tokens[1].id: got 300, expected 259, the next one"));
}

TEST(BpeTokenizer, RefusesWhatIsNoFileOfItsKind) {
  EXPECT_THAT(message(BpeFile(std::string("{\"a\": "))), HasSubstr("invalid JSON"));
  EXPECT_THAT(message(BpeFile(std::string("\"\xFF\""))), HasSubstr("invalid JSON"));
  EXPECT_THAT(message(BpeFile(std::string("[]"))), HasSubstr("expected a JSON object"));
  EXPECT_THAT(message(BpeFile(std::string("{}"))), HasSubstr("model is missing"));
  EXPECT_THROW(BpeTokenizer("no/such/tokenizer.json"), Error);
}

}  // namespace
}  // namespace lamplighter

#include "text/t5_tokenizer.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/api/module.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "base/files.h"
#include "base/json.h"
#include "base/utf8.h"
#include "tests/error_of.h"
#include "text/cleaning.h"

namespace lamplighter {
namespace {

using testing::ElementsAre;

std::string golden_folder() {
  const char* folder = std::getenv("LAMPLIGHTER_GOLDEN");
  return join_path(folder ? folder : LAMPLIGHTER_SOURCE_DIR "/tests/golden/cases/llamagen", "llamagen_t5");
}

std::string model_file() {
  return join_path(golden_folder(), "flan-t5-tiny/spiece.model");
}

TokenizerEntry settings(const std::string& cleaning) {
  TokenizerEntry entry;
  entry.max_length = 120;
  entry.extra_ids = 100;
  entry.cleaning = cleaning;
  return entry;
}

TEST(T5Tokenizer, MatchesEveryGoldenPrompt) {
  const Json cases =
      parse_json(read_file(join_path(golden_folder(), "prompts.json")), "prompts.json", ExitCode::input);
  const T5Tokenizer cleaning(model_file(), settings("llamagen")), raw(model_file(), settings("lower"));
  ASSERT_FALSE(cases.empty());
  for (const Json& entry : cases) {
    const bool clean = entry.at("option") == "clean";
    const std::string prompt = entry.at("prompt");
    SCOPED_TRACE(entry.at("option").get<std::string>() + " " + entry.at("index").dump() + ": " + prompt);
    EXPECT_EQ(clean_text(prompt, clean ? "llamagen" : "lower"), entry.at("text").get<std::string>());
    EXPECT_EQ((clean ? cleaning : raw).encode(prompt).ids, entry.at("ids").get<std::vector<std::int64_t>>());
  }
}

TEST(T5Tokenizer, MatchesSpecialTokens) {
  const T5Tokenizer tokenizer(model_file(), settings("none"));
  const std::int64_t pieces = tokenizer.vocabulary() - 100;
  EXPECT_THAT(tokenizer.encode("</s>").ids, ElementsAre(1, 1));
  EXPECT_THAT(tokenizer.encode("<extra_id_0><extra_id_99> <pad>").ids,
              ElementsAre(pieces + 99, pieces, 0, 1));
  EXPECT_EQ(tokenizer.encode("<<pad>").ids.back(), 1);
  EXPECT_EQ(tokenizer.pieces("<extra_id_100>").back(), tokenizer.pieces(">").back());
  EXPECT_EQ(tokenizer.pieces("a < b"), tokenizer.pieces("a  <  b "));
}

TEST(T5Tokenizer, KeepsTheEndTokenWhenItTruncates) {
  TokenizerEntry entry = settings("none");
  entry.max_length = 5;
  const T5Tokenizer tokenizer(model_file(), entry);
  const std::vector<std::int64_t> all = tokenizer.pieces("a cat and a dog and a horse");
  const T5Caption caption = tokenizer.encode("a cat and a dog and a horse");
  ASSERT_GT(all.size(), 4U);
  EXPECT_THAT(caption.ids, ElementsAre(all[0], all[1], all[2], all[3], 1));
  EXPECT_EQ(tokenizer.encode("a cat").cut, "");
}

// What a caption of at most `ids` pieces leaves unread.
std::string cut(const std::string& caption, std::size_t ids, const std::string& cleaning = "none") {
  TokenizerEntry entry = settings(cleaning);
  entry.max_length = static_cast<std::int64_t>(ids) + 1;
  const T5Caption result = T5Tokenizer(model_file(), entry).encode(caption);
  EXPECT_EQ(find_invalid_utf8(result.cut), std::string::npos) << result.cut;
  EXPECT_LE(result.ids.size(), ids + 1);
  return result.cut;
}

TEST(T5Tokenizer, QuotesTheWordsThatItDoesNotRead) {
  const T5Tokenizer tokenizer(model_file(), settings("none"));
  const std::string head = "A Boat,  a dog", caption = head + " and a Chrysanthemum (white) — at sea";
  const std::size_t known = tokenizer.pieces(head).size();
  EXPECT_EQ(cut(caption, known), "and a Chrysanthemum (white) — at sea");
  // Stops in the middle of a word, which has several pieces.
  const std::size_t middle = tokenizer.pieces(head + " and a").size() + 1;
  ASSERT_GT(tokenizer.pieces(head + " and a Chrysanthemum").size(), middle);
  EXPECT_EQ(cut(caption, middle), "Chrysanthemum (white) — at sea");
  EXPECT_EQ(cut(caption, middle, "lower"), "Chrysanthemum (white) — at sea");
  const std::size_t boat = tokenizer.pieces("a boat").size();
  EXPECT_EQ(cut("A Boat and a <b>Dog</b>", boat, "llamagen"), "and a dog");
  EXPECT_EQ(cut("<b>A</b> Boat and a Dog", boat, "llamagen"), "and a Dog");
  // Sentinels have no pieces, but a place in the text.
  EXPECT_EQ(cut("<extra_id_0> a boat <extra_id_1> dog", 1), "a boat <extra_id_1> dog");
}

// The tokenizer knows none of these characters: a run of them is one piece, which is read or not.
TEST(T5Tokenizer, QuotesWordsOfOtherScripts) {
  const T5Tokenizer tokenizer(model_file(), settings("none"));
  const std::string caption = "A 赤い船 and 白い灯台 at 🌅";
  const auto behind = [&](const char* head) { return cut(caption, tokenizer.pieces(head).size()); };
  EXPECT_EQ(behind("A"), "赤い船 and 白い灯台 at 🌅");
  EXPECT_EQ(behind("A 赤い船 and"), "白い灯台 at 🌅");
  EXPECT_EQ(behind("A 赤い船 and 白い灯台 at"), "🌅");
  for (std::size_t ids = 1; ids < 12; ++ids)
    cut("A👩‍👧é船🌅𝔘 café ﬁne ｗｉｄｅ 10½", ids);
}

TEST(T5Tokenizer, RejectsOtherFiles) {
  const std::string path = testing::TempDir() + "t5_tokenizer_test." + std::to_string(getpid());
  const std::string model = read_file(model_file());
  for (const std::string& bytes : {std::string(), std::string("<html>"), model.substr(0, model.size() / 2)}) {
    write_file(path, bytes);
    EXPECT_NE(error_of(ExitCode::bundle, [&] { const T5Tokenizer tokenizer(path, settings("none")); }), "")
        << bytes.size();
  }
  std::filesystem::remove(path);
  TokenizerEntry other = settings("none");
  other.eos = 2;
  EXPECT_THROW(T5Tokenizer(model_file(), other), Error);
}

// A SentencePiece library whose symbols leak overwrites a lock of LibTorch; the first forward then never
// returns.
TEST(T5Tokenizer, SharesAProcessWithTorchScript) {
  const T5Tokenizer tokenizer(model_file(), settings("none"));
  const std::size_t count = tokenizer.encode("a cat").ids.size();
  torch::jit::Module module("doubling");
  module.define("def forward(self, x):\n    return x + x\n");
  const at::Tensor result = module.forward({at::ones({static_cast<std::int64_t>(count)})}).toTensor();
  EXPECT_EQ(result.sum().item<float>(), 2.0F * static_cast<float>(count));
  EXPECT_EQ(tokenizer.encode("a cat").ids.size(), count);
}

}  // namespace
}  // namespace lamplighter

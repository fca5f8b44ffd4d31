#include "decode/prompt_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/utf8.h"
#include "lamplighter/error.h"
#include "tests/error_of.h"
#include "tests/text/bpe_file.h"
#include "text/bpe_tokenizer.h"

namespace lamplighter {
namespace {

using nlohmann::json;
using testing::HasSubstr;

// A bundle whose prompts are ids of a byte-level tokenizer without merges: one id for each byte. A prompt has
// room for `length` ids.
struct Prompts {
  BpeFile file;
  Manifest manifest;

  Prompts(std::int64_t length, const std::string& text, const json& tokenizer = make_tokenizer({}))
      : file(tokenizer) {
    manifest.directory = "";
    manifest.tokenizer = TokenizerEntry{};
    manifest.tokenizer->file = file.path();
    manifest.tokenizer->max_length = length;
    manifest.prompt = PromptEntry{};
    manifest.prompt->kind = "tokens";
    manifest.prompt->length = length;
    manifest.prompt->text = text;
    manifest.tokens.vocabulary = 300;
  }

  PromptIds encode(const Request& request) const { return PromptTokenizer(manifest).encode(request, Grid()); }

  // The message of a caption that is too long.
  std::string refusal(const Request& request) const {
    std::string message = error_of(ExitCode::input, [&] { encode(request); });
    EXPECT_EQ(find_invalid_utf8(message), std::string::npos);
    return message;
  }
  std::string refusal(const std::string& caption) const {
    Request request;
    request.prompt = caption;
    return refusal(request);
  }
};

TEST(PromptTokenizer, QuotesWhatIsTooMuch) {
  const Prompts prompts(20, "user: {prompt}\n");  // thirteen bytes of a caption
  Request request;
  request.prompt = "a red boat at";
  EXPECT_EQ(prompts.encode(request).ids.size(), 20U);
  EXPECT_EQ(prompts.refusal("a red boat at sea"),
            "prompt: got 24 tokens, expected at most 20; leave out its end, from 'sea'");
  EXPECT_THAT(prompts.refusal("a red lighthouse"), HasSubstr("from 'lighthouse'"));  // cut in the word
  EXPECT_THAT(prompts.refusal("a red boat A{t} B"), HasSubstr("from 'A{t} B'"));
  EXPECT_THAT(prompts.refusal("赤い船と白い灯台"), HasSubstr("from '白い灯台'"));  // after four and a third
  EXPECT_THAT(prompts.refusal("a boat 🚢🌅🌊"), HasSubstr("from '🌅🌊'"));              // in the middle of 🌅
  EXPECT_THAT(prompts.refusal("a boat " + std::string(500, 'x')), HasSubstr("from 'xxx"));
  EXPECT_THAT(prompts.refusal("a boat at " + std::string(500, 'x')).size(), testing::Lt(180U));
}

TEST(PromptTokenizer, QuotesTheUsersLettersOfComposedTexts) {
  json file = make_tokenizer({});
  file["normalizer"] = {{"type", "NFC"}};
  const Prompts prompts(12, "{prompt}.", file);
  EXPECT_THAT(prompts.refusal("cafe\u0301 at night now"), HasSubstr("from 'night now'"));
  EXPECT_THAT(prompts.refusal("a boat at cafe\u0301"), HasSubstr("from 'caf\u00E9'"));
}

// In pixels and in codes, in both halves; a caption's own braces stay.
TEST(PromptTokenizer, FillsInSizes) {
  Prompts prompts(80, "{prompt} {width}x{height} {rows}*{columns}");
  prompts.manifest.prompt->negative_text = "{prompt} {rows}*{columns}";
  Grid grid;
  grid.width = 96;
  grid.height = 64;
  grid.rows = 8;
  grid.columns = 12;
  Request request;
  request.prompt = "{rows}";
  request.negative_prompt = "fog";
  const BpeTokenizer tokenizer(prompts.file.path());
  const PromptIds ids = PromptTokenizer(prompts.manifest).encode(request, grid);
  EXPECT_EQ(tokenizer.decode(ids.ids), "{rows} 96x64 8*12");
  EXPECT_EQ(tokenizer.decode(ids.unconditional), "fog 8*12");
}

TEST(PromptTokenizer, QuotesNegativePrompts) {
  Prompts prompts(16, "{prompt}");
  prompts.manifest.prompt->negative_text = "no {prompt}";
  Request request;
  request.prompt = "boat";
  request.negative_prompt = "fog, rain, and snow";
  EXPECT_EQ(prompts.refusal(request),
            "negative_prompt: got 22 tokens, expected at most 16; leave out its end, from 'and snow'");
}

// A template that is too long by itself has no words to leave out.
TEST(PromptTokenizer, QuotesNothingOfTemplates) {
  const Prompts prompts(4, "a long template: {prompt}");
  EXPECT_EQ(prompts.refusal("boat"), "prompt: got 21 tokens, expected at most 4; shorten it");
}

}  // namespace
}  // namespace lamplighter

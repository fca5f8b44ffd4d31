#include "text/t5_normalizer.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <stdexcept>

#include "base/files.h"
#include "base/utf8.h"

namespace lamplighter {
namespace {

std::string model_bytes() {
  const char* folder = std::getenv("LAMPLIGHTER_GOLDEN");
  return read_file(join_path(folder ? folder : LAMPLIGHTER_SOURCE_DIR "/tests/golden/cases/llamagen",
                             "llamagen_t5/flan-t5-tiny/spiece.model"));
}

const T5Normalizer& normalizer() {
  static const T5Normalizer made = [] {
    std::string model = model_bytes();
    return T5Normalizer(model);
  }();
  return made;
}

// Results of `tokenizers` 0.23 with the model's table.
TEST(T5Normalizer, LooksShortGraphemesUpAsAWhole) {
  EXPECT_EQ(normalizer().normalize("\uFB01sh \u2122"), "fish TM");
  EXPECT_EQ(normalizer().normalize("e\u0301"), "\u00E9");
  EXPECT_EQ(normalizer().normalize("e\u0301\u0302"), "\u00E9");  // 5 bytes: the second mark is dropped
  EXPECT_EQ(normalizer().normalize("e\u0301\u0302\u0303"), "e\u0301\u0302\u0303");  // 7 bytes
  EXPECT_EQ(normalizer().normalize("\u00BD\u200D"), "1\u20442");                    // the joiner is dropped
  EXPECT_EQ(normalizer().normalize("\u2460\u031E"), "1");
  EXPECT_EQ(normalizer().normalize("\u070F\u2460\u031E"), "\u070F1\u031E");  // 7 bytes with the mark in front
  EXPECT_EQ(normalizer().normalize("\u1100\u1161"), "\u1100\u1161");         // 6 bytes: jamo stay apart
}

TEST(T5Normalizer, SplitsAtAllWhiteSpace) {
  EXPECT_EQ(normalizer().normalize("a\u0085b\u1680c\u3000d\te\u2028f"), "a b c d e f");
}

TEST(T5Normalizer, TakesTheTableOutOfTheModel) {
  std::string model = model_bytes();
  const std::size_t whole = model.size();
  const T5Normalizer first(model);
  EXPECT_LT(model.size() + 200'000, whole);
  const T5Normalizer none(model);
  EXPECT_EQ(none.normalize("\uFB01\u0085"), "\uFB01 ");
}

TEST(T5Normalizer, RefusesMalformedModels) {
  const std::string whole = model_bytes();
  for (std::size_t size : {whole.size() - 1, whole.size() / 2, std::size_t{1}}) {
    std::string model = whole.substr(0, size);
    EXPECT_THROW(T5Normalizer{model}, std::invalid_argument) << size;
  }
  std::string empty_table =
      "\x1A\x05\x12\x03"
      "abc";
  EXPECT_THROW(T5Normalizer{empty_table}, std::invalid_argument);
}

// A damaged table gives other text, and reads nothing outside.
TEST(T5Normalizer, SurvivesDamagedTables) {
  std::mt19937 rng(1);
  for (int round = 0; round < 20; ++round) {
    std::string model = model_bytes();
    const std::size_t begin = model.find("nmt_nfkc") + 20;
    for (int i = 0; i < 20'000; ++i) model[begin + rng() % 200'000] = static_cast<char>(rng());
    try {
      const T5Normalizer damaged(model);
      for (char32_t code = 1; code < 0x3000; code += 7)
        damaged.normalize(encode_utf8(std::u32string{code, 0x301}));
    } catch (const std::invalid_argument&) {
    }
  }
}

}  // namespace
}  // namespace lamplighter

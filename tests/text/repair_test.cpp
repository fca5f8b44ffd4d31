#include "text/repair.h"

#include <gtest/gtest.h>

#include "base/utf8.h"
#include "text/mojibake.h"

namespace lamplighter {
namespace {

struct RepairCase {
  const char* text;
  const char* repaired;
};

#include "tests/text/repair_cases.inc"

std::string repair(std::string_view text) {
  return encode_utf8(repair_text(decode_utf8(text)));
}

TEST(RepairText, DoesWhatFtfyDoes) {
  std::size_t changed = 0;
  for (const RepairCase& each : kRepairCases) {
    EXPECT_EQ(repair(each.text), each.repaired) << each.text;
    changed += std::string_view(each.text) != each.repaired;
  }
  EXPECT_GT(changed, std::size(kRepairCases) / 3);
  EXPECT_LT(changed, std::size(kRepairCases));
}

TEST(RepairText, KeepsTextsInAllScripts) {
  for (const char* text :
       {"caf\u00e9, \u00e0 la mode", "\u00c5sa och \u00d6rjan", "\u043b\u043e\u0434\u043a\u0430",
        "\u03ba\u03b1\u03c1\u03ac\u03b2\u03b9", "\u8239", "\U0001F600"})
    EXPECT_EQ(repair(text), text);
}

// The work grows with the text, also where every character looks odd or a text was garbled many times.
TEST(FixEncoding, TakesLinearTime) {
  std::string garbled = "\u00e9";
  for (int times = 0; times < 10; ++times) {
    std::u32string bytes;
    for (const char byte : garbled) bytes += static_cast<unsigned char>(byte);
    garbled = encode_utf8(bytes);
  }
  EXPECT_EQ(repair(garbled), "\u00e9");
  for (const std::string& part : {std::string("\u00c3\u00a9"), std::string("\u00e2\u20ac"), garbled,
                                  std::string("\u00c3 "), std::string("\u00d0\u0153a")}) {
    std::u32string text;
    while (text.size() < 30000) text += decode_utf8(part);
    for (const char* end : {"", "\u4e00", "\u0081\u4e00"}) {
      std::size_t steps = 0;
      fix_encoding(text + decode_utf8(end), &steps);
      EXPECT_LT(steps, 40 * text.size()) << part << end;
    }
  }
}

}  // namespace
}  // namespace lamplighter

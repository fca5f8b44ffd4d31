#include "image/helvetica.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/utf8.h"

namespace lamplighter {
namespace {

constexpr unsigned kFirst = 32;  // code of the first width

// Thousandths of the font size. Codes without a character have the width of the bullet that stands for them.
constexpr std::array<std::uint16_t, 224> kWidths{
    278,  278, 355, 556, 556, 889,  667,  191,  333, 333,  389, 584, 278,  333, 278, 278,   // 0x20
    556,  556, 556, 556, 556, 556,  556,  556,  556, 556,  278, 278, 584,  584, 584, 556,   // 0x30
    1015, 667, 667, 722, 722, 667,  611,  778,  722, 278,  500, 667, 556,  833, 722, 778,   // 0x40
    667,  778, 722, 667, 611, 722,  667,  944,  667, 667,  611, 278, 278,  278, 469, 556,   // 0x50
    333,  556, 556, 500, 556, 556,  278,  556,  556, 222,  222, 500, 222,  833, 556, 556,   // 0x60
    556,  556, 333, 500, 278, 556,  500,  722,  500, 500,  500, 334, 260,  334, 584, 350,   // 0x70
    556,  350, 222, 556, 333, 1000, 556,  556,  333, 1000, 667, 333, 1000, 350, 611, 350,   // 0x80
    350,  222, 222, 333, 333, 350,  556,  1000, 333, 1000, 500, 333, 944,  350, 500, 667,   // 0x90
    278,  333, 556, 556, 556, 556,  260,  556,  333, 737,  370, 556, 584,  333, 737, 333,   // 0xa0
    400,  584, 333, 333, 333, 556,  537,  278,  333, 333,  365, 556, 834,  834, 834, 611,   // 0xb0
    667,  667, 667, 667, 667, 667,  1000, 722,  667, 667,  667, 667, 278,  278, 278, 278,   // 0xc0
    722,  722, 778, 778, 778, 778,  778,  584,  778, 722,  722, 722, 722,  667, 667, 611,   // 0xd0
    556,  556, 556, 556, 556, 556,  889,  500,  556, 556,  556, 556, 278,  278, 278, 278,   // 0xe0
    556,  556, 556, 556, 556, 556,  556,  584,  611, 556,  556, 556, 556,  500, 556, 500};  // 0xf0

// Characters of the codes 0x80 to 0x9f. 0: none.
constexpr std::array<char32_t, 32> kSpecial{0x20AC, 0,      0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021,
                                            0x02C6, 0x2030, 0x0160, 0x2039, 0x0152, 0,      0x017D, 0,
                                            0,      0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014,
                                            0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0,      0x017E, 0x0178};

unsigned code_of(char32_t character) {
  if ((character >= 0x20 && character < 0x7F) || (character >= 0xA0 && character <= 0xFF))
    return static_cast<unsigned>(character);
  const auto* const found = std::find(kSpecial.begin(), kSpecial.end(), character);
  if (character == 0 || found == kSpecial.end()) return '?';
  return 0x80U + static_cast<unsigned>(found - kSpecial.begin());
}

}  // namespace

std::string encode_winansi(std::string_view text) {
  std::string encoded;
  for (const char32_t character : decode_utf8(text)) encoded += static_cast<char>(code_of(character));
  return encoded;
}

double helvetica_width(std::string_view encoded) {
  unsigned width = 0;
  for (const char letter : encoded) {
    const auto code = static_cast<unsigned char>(letter);
    if (code >= kFirst) width += kWidths[code - kFirst];
  }
  return width / 1000.0;
}

}  // namespace lamplighter

#include "text/mojibake.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <vector>

#include "base/utf8.h"
#include "text/html.h"
#include "text/unicode.h"

namespace lamplighter {
namespace {

// The sets of characters that a character belongs to, a bit each.
struct Sets {
  std::uint64_t words[2];

  constexpr bool has(std::size_t set) const { return (words[set / 64] >> set % 64 & 1U) != 0; }
  void add(std::size_t set) { words[set / 64] |= std::uint64_t{1} << set % 64; }
};
struct SetRange {
  char32_t first, last;
  Sets sets;
};

#include "text/mojibake_tables.inc"

using Text = std::u32string_view;
using Members = std::vector<Sets>;  // of every character of a text

Sets sets_of(char32_t code) {
  const SetRange* const after =
      std::upper_bound(std::begin(kSetRanges), std::end(kSetRanges), code,
                       [](char32_t c, const SetRange& range) { return c < range.first; });
  const bool is_named = after != std::begin(kSetRanges) && code <= after[-1].last;
  Sets sets = is_named ? after[-1].sets : kOtherSets;
  if (is_word(code)) sets.add(kWordSet);
  if (is_space(code)) sets.add(kSpaceSet);
  return sets;
}

Members members_of(Text text) {
  Members members(text.size());
  std::transform(text.begin(), text.end(), members.begin(), sets_of);
  return members;
}

// Whether characters match a rule from `at` on: a set for each, counted from 1; 0 ends the rule.
bool matches(const Members& members, std::size_t at, const std::uint8_t (&rule)[8]) {
  for (const std::uint8_t set : rule) {
    if (set == 0) return true;
    if (set == kStart) {
      if (at != 0) return false;
    } else if (at >= members.size() || !members[at++].has(set)) {
      return false;
    }
  }
  return true;
}

// Whether a text has unlikely neighbours.
bool is_bad(Text text, std::size_t* steps) {
  const Members members = members_of(text);
  if (steps != nullptr) *steps += text.size();
  for (std::size_t at = 0; at < members.size(); ++at) {
    for (const auto& rule : kRules) {
      if (matches(members, at, rule)) return true;
    }
  }
  return false;
}

constexpr std::size_t kFirstSloppy = 1, kLastSloppy = 6, kMacRoman = 8;  // in kCharsets
constexpr char kLost = 0x1A;  // the byte of U+FFFD, where a character was lost

bool is_sloppy(std::size_t charset) {
  return charset >= kFirstSloppy && charset <= kLastSloppy;
}

// Writes a text in a charset; nothing if it has other characters.
std::optional<std::string> encode(Text text, std::size_t charset) {
  std::string bytes;
  bytes.reserve(text.size());
  for (const char32_t code : text) {
    const bool is_lost = is_sloppy(charset) && code == 0xFFFD;
    if (is_lost || (code < 0x80 && !(is_sloppy(charset) && code == kLost))) {
      bytes += is_lost ? kLost : static_cast<char>(code);
      continue;
    }
    const auto& upper = kCharsets[charset];
    const auto* const found = std::find(std::begin(upper), std::end(upper), code);
    if (found == std::end(upper)) return std::nullopt;
    bytes += static_cast<char>(0x80 + (found - std::begin(upper)));
  }
  return bytes;
}

// Bytes of a text; 0 behind its end.
struct Bytes {
  std::string_view text;

  unsigned operator[](std::size_t at) const {
    return at < text.size() ? static_cast<unsigned char>(text[at]) : 0U;
  }
  bool within(std::size_t at, unsigned first, unsigned last) const {
    return (*this)[at] >= first && (*this)[at] <= last;
  }
  bool continues(std::size_t at) const { return within(at, 0x80, 0xBF); }
  bool is_lost(std::size_t at) const { return (*this)[at] == kLost || (*this)[at] == '?'; }
  bool is_part(std::size_t at) const { return (*this)[at] == kLost || continues(at); }
};

// Length of a sequence of UTF-8 in which a space stands for the byte A0; 0: there is none.
std::size_t altered_length(Bytes bytes, std::size_t at) {
  const unsigned first = bytes[at];
  const auto usual = [&](std::size_t place) {
    return bytes.continues(place) && bytes[place] != 0x85 && bytes[place] != 0xA0;
  };
  if (bytes[at + 1] == ' ' &&
      std::string_view("\xC2\xC3\xC5\xCE\xD0\xD9").find(static_cast<char>(first)) != std::string_view::npos)
    return 2;
  if ((first == 0xE2 || first == 0xE3) && bytes[at + 1] == ' ' && usual(at + 2)) return 3;
  if (first >= 0xE0 && first <= 0xE3 && usual(at + 1) && bytes[at + 2] == ' ') return 3;
  if (first != 0xF0) return 0;
  int spaces = 0, others = 0;
  for (std::size_t place = at + 1; place < at + 4; ++place) {
    spaces += bytes[place] == ' ';
    others += bytes.continues(place);
  }
  return spaces == 1 && others == 2 ? 4 : 0;
}

// Whether one of `count` bytes was lost and the others belong to the same character.
bool has_lost(Bytes bytes, std::size_t at, std::size_t count) {
  for (std::size_t lost = at; lost < at + count; ++lost) {
    bool fits = bytes.is_lost(lost);
    for (std::size_t place = at; place < at + count; ++place) fits &= place == lost || bytes.is_part(place);
    if (fits) return true;
  }
  return false;
}

// Length of a sequence of UTF-8 that has lost bytes; 0: there is none.
std::size_t lossy_length(Bytes bytes, std::size_t at) {
  const unsigned first = bytes[at];
  if (first >= 0xC2 && first <= 0xDF && bytes[at + 1] == kLost) return 2;
  if ((first == 0xC2 || first == 0xC3) && bytes[at + 1] == '?') return 2;
  const bool is_pair = first == 0xED && bytes.within(at + 1, 0xA0, 0xAF) && bytes[at + 3] == 0xED &&
                       bytes.within(at + 4, 0xB0, 0xBF);
  const auto may_be = [&](std::size_t place) { return bytes.is_lost(place) || bytes.continues(place); };
  if (is_pair && ((bytes.is_lost(at + 2) && may_be(at + 5)) || (may_be(at + 2) && bytes.is_lost(at + 5))))
    return 6;
  if (first >= 0xE0 && first <= 0xEF && has_lost(bytes, at + 1, 2)) return 3;
  if (first >= 0xF0 && first <= 0xF4 && has_lost(bytes, at + 1, 3)) return 4;
  return first == kLost ? 1 : 0;
}

// Replaces the sequences of a kind.
template <class Replace>
std::string replace(std::string_view bytes, std::size_t (*length_at)(Bytes, std::size_t),
                    const Replace& replacement) {
  std::string result;
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t length = length_at({bytes}, at);
    if (length > 0) result += replacement(std::string(bytes.substr(at, length)));
    if (length == 0) result += bytes[at];
    at += std::max<std::size_t>(length, 1);
  }
  return result;
}

// "à" before a space that belongs behind it: not in Portuguese words with "àqu" and in "às".
std::size_t grave_length(Bytes bytes, std::size_t at) {
  if (bytes[at] != 0xC3 || bytes[at + 1] != ' ') return 0;
  const std::string_view rest = bytes.text.substr(at + 2);
  for (const std::string_view word : {" ", "quele", "quela", "quilo", "s "}) {
    if (rest.substr(0, word.size()) == word) return 0;
  }
  return 2;
}

std::string restore_spaces(const std::string& bytes) {
  bool is_altered = false;
  for (std::size_t at = 0; at < bytes.size() && !is_altered; ++at)
    is_altered = altered_length({bytes}, at) > 0;
  if (!is_altered) return bytes;
  const std::string spaced =
      replace(bytes, grave_length, [](const std::string&) { return std::string("\xC3\xA0 "); });
  return replace(spaced, altered_length, [](std::string found) {
    std::replace(found.begin(), found.end(), ' ', '\xA0');
    return found;
  });
}

// Length of a character above U+FFFF in two halves of three bytes each, or of a zero byte in two.
std::size_t variant_length(Bytes bytes, std::size_t at) {
  if (bytes[at] == 0xC0 && bytes[at + 1] == 0x80) return 2;
  const bool is_pair = bytes[at] == 0xED && bytes.within(at + 1, 0xA0, 0xAF) && bytes.continues(at + 2) &&
                       bytes[at + 3] == 0xED && bytes.within(at + 4, 0xB0, 0xBF) && bytes.continues(at + 5);
  return is_pair ? 6 : 0;
}

std::optional<std::u32string> decode(std::string_view bytes) {
  const std::string plain = replace(bytes, variant_length, [](const std::string& found) {
    if (found.size() == 2) return std::string(1, '\0');
    const Bytes b{found};
    return encode_utf8(std::u32string(1, ((b[1] & 0xFU) << 16U) + ((b[2] & 0x3FU) << 10U) +
                                             ((b[4] & 0xFU) << 6U) + (b[5] & 0x3FU) + 0x10000));
  });
  if (find_invalid_utf8(plain) != std::string::npos) return std::nullopt;
  return decode_utf8(plain);
}

// The end of the sequences that look like UTF-8 from `at` on.
std::size_t end_of_run(const Members& members, std::size_t at) {
  if (at > 0 && members[at - 1].has(kContinuationStrict)) return at;
  for (;;) {
    std::size_t length = 0;
    for (std::size_t more = 1; more <= 3 && length == 0; ++more) {
      const std::size_t first = more == 1 ? kFirstOf2 : more == 2 ? kFirstOf3 : kFirstOf4;
      bool fits = at + more < members.size() && members[at].has(first);
      for (std::size_t place = 1; place <= more && fits; ++place)
        fits = members[at + place].has(kContinuation);
      if (fits) length = more + 1;
    }
    if (length == 0) return at;
    at += length;
  }
}

// Repairs the parts that look like UTF-8 one by one.
std::u32string repair_parts(Text text, std::size_t* steps) {
  const Members members = members_of(text);
  std::u32string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = end_of_run(members, at);
    const Text part = text.substr(at, std::max(end - at, std::size_t{1}));
    const bool is_run = end > at && part.size() < text.size() && is_bad(part, steps);
    result += is_run ? fix_encoding(part, steps) : std::u32string(part);
    at += part.size();
  }
  return result;
}

std::u32string repair_once(Text text, std::size_t* steps) {
  if (!is_bad(text, steps)) return std::u32string(text);
  for (std::size_t charset = 0; charset < std::size(kCharsets); ++charset) {
    std::optional<std::string> bytes = encode(text, charset);
    if (!bytes) continue;
    if (charset != kMacRoman) bytes = restore_spaces(*bytes);
    if (is_sloppy(charset))
      bytes = replace(*bytes, lossy_length, [](const std::string&) { return std::string("\xEF\xBF\xBD"); });
    if (auto fixed = decode(*bytes)) return *std::move(fixed);
  }
  std::u32string result = repair_parts(text, steps);
  if (result == text) std::transform(text.begin(), text.end(), result.begin(), from_windows_1252);
  return result;
}

}  // namespace

std::u32string fix_encoding(std::u32string_view text, std::size_t* steps) {
  std::u32string result(text);
  for (std::u32string before; before != result;) {
    before = result;
    result = repair_once(before, steps);
  }
  return result;
}

}  // namespace lamplighter

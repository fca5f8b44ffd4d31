#include "text/unicode.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

namespace lamplighter {
namespace {

struct Range {
  char32_t first, last;
};
struct LowerRun {
  char32_t first, last;
  int step, offset;
};
struct Decomposition {
  char32_t code, first, second;
  bool composes;
};
struct CombiningRun {
  char32_t first, last;
  int order;
};
struct Mapping {
  char32_t code, first, second;
};
struct Entity {
  const char *name, *text;
};

#include "text/unicode_tables.inc"

// Finds the row whose range contains the code, or null. The table is sorted by `first`.
template <class Row, std::size_t size>
const Row* find_run(const Row (&table)[size], char32_t code) {
  const Row* row = std::upper_bound(std::begin(table), std::end(table), code,
                                    [](char32_t value, const Row& entry) { return value < entry.first; });
  return row != std::begin(table) && code <= std::prev(row)->last ? std::prev(row) : nullptr;
}

// Finds the row of the code, or null. The table is sorted by `code`.
template <class Row, std::size_t size>
const Row* find_code(const Row (&table)[size], char32_t code) {
  const Row* row = std::lower_bound(std::begin(table), std::end(table), code,
                                    [](const Row& entry, char32_t value) { return entry.code < value; });
  return row != std::end(table) && row->code == code ? row : nullptr;
}

constexpr char32_t kSigma = 0x3A3, kFinalSigma = 0x3C2, kDottedI = 0x130;

// Sigma is final after a cased letter and before none, ignoring case-ignorable characters.
bool is_final_sigma(std::u32string_view text, std::size_t at) {
  std::size_t before = at;
  while (before > 0 && find_run(kCaseIgnorable, text[before - 1])) --before;
  if (before == 0 || !find_run(kCased, text[before - 1])) return false;
  std::size_t after = at + 1;
  while (after < text.size() && find_run(kCaseIgnorable, text[after])) ++after;
  return after == text.size() || !find_run(kCased, text[after]);
}

// Hangul syllables compose by arithmetic (Unicode standard, section 3.12).
constexpr char32_t kSyllable = 0xAC00, kLead = 0x1100, kVowel = 0x1161, kTail = 0x11A7;
constexpr char32_t kLeads = 19, kVowels = 21, kTails = 28;

// Whether a Unicode version assigns a code. Unassigned codes stay unchanged.
using Known = bool (*)(char32_t);
bool is_any(char32_t /*code*/) {
  return true;
}
bool is_known_to_normalizer(char32_t code) {
  return find_run(kNormalizerLater, code) == nullptr;
}

void decompose(char32_t code, Known known, std::u32string& result) {
  const bool decomposes = known(code);
  if (decomposes && code >= kSyllable && code < kSyllable + kLeads * kVowels * kTails) {
    const char32_t index = code - kSyllable;
    result.push_back(kLead + index / (kVowels * kTails));
    result.push_back(kVowel + index % (kVowels * kTails) / kTails);
    if (index % kTails != 0) result.push_back(kTail + index % kTails);
  } else if (const Decomposition* row = decomposes ? find_code(kDecompositions, code) : nullptr) {
    decompose(row->first, known, result);
    if (row->second != 0) result += row->second;  // only first parts decompose further
  } else {
    result += code;
  }
}

int combining_order(char32_t code, Known known) {
  const CombiningRun* run = find_run(kCombining, code);
  return run && known(code) ? run->order : 0;
}

// Composes two neighbours; 0 when they do not compose.
char32_t compose_pair(char32_t first, char32_t second, Known known) {
  if (first >= kLead && first < kLead + kLeads && second >= kVowel && second < kVowel + kVowels) {
    return kSyllable + ((first - kLead) * kVowels + (second - kVowel)) * kTails;
  }
  if (first >= kSyllable && first < kSyllable + kLeads * kVowels * kTails &&
      (first - kSyllable) % kTails == 0 && second > kTail && second < kTail + kTails) {
    return first + (second - kTail);
  }
  using Pair = std::pair<std::pair<char32_t, char32_t>, char32_t>;
  static const std::vector<Pair> pairs = [] {
    std::vector<Pair> rows;
    for (const Decomposition& row : kDecompositions) {
      if (row.composes) rows.push_back({{row.first, row.second}, row.code});
    }
    std::sort(rows.begin(), rows.end());
    return rows;
  }();
  const auto found = std::lower_bound(pairs.begin(), pairs.end(), Pair{{first, second}, 0});
  const bool composes = found != pairs.end() && found->first == std::pair{first, second};
  return composes && known(found->second) ? found->second : 0;
}

// Sorts the marks after a base character by their combining class.
void order_marks(std::u32string& text, Known known) {
  for (auto at = text.begin(); at != text.end();) {
    auto end = at;
    while (end != text.end() && combining_order(*end, known) != 0) ++end;
    std::stable_sort(at, end, [known](char32_t a, char32_t b) {
      return combining_order(a, known) < combining_order(b, known);
    });
    at = end == text.end() ? end : end + 1;
  }
}

// Composes (NFC) by the rules of a Unicode version.
std::u32string compose_known(std::u32string_view text, Known known) {
  std::u32string parts;
  for (const char32_t code : text) decompose(code, known, parts);
  order_marks(parts, known);
  std::u32string result;
  std::size_t starter = std::u32string::npos;  // last base character in the result
  int last_order = 0;                          // combining class of the last mark after it
  for (const char32_t code : parts) {
    const int order = combining_order(code, known);
    const bool adjacent = starter + 1 == result.size();
    if (starter != std::u32string::npos && (adjacent || (last_order != 0 && last_order < order))) {
      if (const char32_t composed = compose_pair(result[starter], code, known)) {
        result[starter] = composed;
        continue;
      }
    }
    if (order == 0) starter = result.size();
    last_order = order;
    result += code;
  }
  return result;
}

}  // namespace

bool modifies(char32_t code) {
  return find_run(kCaseIgnorable, code) != nullptr;
}

bool is_word(char32_t code) {
  return find_run(kWord, code) != nullptr;
}

bool is_digit(char32_t code) {
  const char32_t* zero = std::upper_bound(std::begin(kDigitZero), std::end(kDigitZero), code);
  return zero != std::begin(kDigitZero) && code - *std::prev(zero) < 10;
}

bool is_space(char32_t code) {
  return (code >= 0x09 && code <= 0x0D) || (code >= 0x1C && code <= 0x20) || code == 0x85 || code == 0xA0 ||
         code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 || code == 0x2029 ||
         code == 0x202F || code == 0x205F || code == 0x3000;
}

bool extends_grapheme(char32_t code) {
  return find_run(kExtendsGrapheme, code) != nullptr;
}

bool ends_grapheme(char32_t code) {
  return find_run(kEndsGrapheme, code) != nullptr;
}

namespace splitting {

bool is_letter(char32_t code) {
  return find_run(kSplitLetter, code) != nullptr;
}
bool is_number(char32_t code) {
  return find_run(kSplitNumber, code) != nullptr;
}
bool is_punctuation(char32_t code) {
  return find_run(kSplitPunctuation, code) != nullptr;
}
bool is_space(char32_t code) {
  return find_run(kSplitSpace, code) != nullptr;
}
bool is_digit_of_stage(char32_t code) {
  return find_run(kStageDigit, code) != nullptr;
}
bool is_punctuation_of_stage(char32_t code) {
  return find_run(kStagePunctuation, code) != nullptr;
}

std::u32string compose(std::u32string_view text) {
  return compose_known(text, is_known_to_normalizer);
}

}  // namespace splitting

std::u32string to_lower(std::u32string_view text) {
  std::u32string result;
  result.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char32_t code = text[i];
    const LowerRun* run = find_run(kLower, code);
    if (code == kDottedI) {
      result += U"i\u0307";
    } else if (code == kSigma && is_final_sigma(text, i)) {
      result += kFinalSigma;
    } else if (run && (code - run->first) % static_cast<char32_t>(run->step) == 0) {
      result += static_cast<char32_t>(static_cast<int>(code) + run->offset);
    } else {
      result += code;
    }
  }
  return result;
}

std::u32string strip(std::u32string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return std::u32string(text);
}

std::u32string compose(std::u32string_view text) {
  return compose_known(text, is_any);
}

std::u32string unify_width(std::u32string_view text) {
  std::u32string result;
  for (const char32_t code : text) {
    const Mapping* row = find_code(kWidths, code);
    result += row ? row->first : code;
    if (row && row->second != 0) result += row->second;
  }
  return result;
}

std::string_view find_entity(std::string_view name) {
  const Entity* row =
      std::lower_bound(std::begin(kEntities), std::end(kEntities), name,
                       [](const Entity& entry, std::string_view wanted) { return entry.name < wanted; });
  return row != std::end(kEntities) && row->name == name ? row->text : std::string_view();
}

}  // namespace lamplighter

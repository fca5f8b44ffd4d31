#include "text/bpe_pretokenizer.h"

#include <string>
#include <utility>

#include "base/utf8.h"
#include "text/bpe_class_expression.h"

namespace lamplighter {
namespace {

using namespace pattern;
using Match = std::optional<std::size_t> (*)(const Subject&, std::size_t);

constexpr bool is_ascii_mark(char32_t c) {
  return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}
bool is_mark(char32_t c) {
  return is_ascii_mark(c) || splitting::is_punctuation(c);
}
bool is_not_space(char32_t c) {
  return !splitting::is_space(c);
}
bool is_other(char32_t c) {
  return !splitting::is_space(c) && !splitting::is_letter(c) && !splitting::is_number(c);
}

constexpr Between kFigure{'0', '9'};
constexpr auto kSentinel = sequence(literal(U"<sentinel:"), repeat(kFigure), literal(U">"));
constexpr auto kImage = sequence(literal(U"IMGIMG"), repeat(Between{'A', 'I'}, 1, 4), literal(U"Z"));
constexpr Text kSpaceRuns[] = {U"\t", U"\n", U"    ", U"  "};
constexpr auto kSpaces = words(kSpaceRuns);
constexpr auto kNumber = one(splitting::is_number);
constexpr auto kMark = one(is_mark);
constexpr auto kPunctuation = one(splitting::is_punctuation);

constexpr Text kContractions[] = {U"'s", U"'t", U"'re", U"'ve", U"'m", U"'ll", U"'d"};
constexpr auto kSpace = maybe(literal(U" "));
constexpr auto kWord = either(
    words(kContractions),
    either(sequence(kSpace, repeat(splitting::is_letter)),
           either(sequence(kSpace, repeat(splitting::is_number)), sequence(kSpace, repeat(is_other)))));
constexpr auto kGaps =
    either(sequence(repeat(splitting::is_space), not_before(is_not_space)), repeat(splitting::is_space));
constexpr auto kGpt2 = either(kWord, kGaps);

// (?i:'s|'t|'re|'ve|'m|'ll|'d). The long s also matches s.
constexpr auto kAnyCase =
    sequence(literal(U"'"),
             either(one(Among{U"sS\u017FtTmMdD"}),
                    either(sequence(one(Among{U"rRvV"}), one(Among{U"eE"})), repeat(Among{U"lL"}, 2, 2))));
constexpr Among kBreaks{U"\r\n"};
bool is_glue(char32_t c) {  // [^\r\n\p{L}\p{N}]
  return !kBreaks(c) && !splitting::is_letter(c) && !splitting::is_number(c);
}
template <class Digits>
constexpr auto words_and_gaps(Digits digits) {
  const auto word =
      either(kAnyCase, either(sequence(repeat(is_glue, 0, 1), repeat(splitting::is_letter)),
                              either(digits, sequence(kSpace, repeat(is_other), repeat(kBreaks, 0)))));
  return either(word, either(sequence(repeat(splitting::is_space, 0), repeat(kBreaks)), kGaps));
}
constexpr auto kQwen = words_and_gaps(kNumber);
constexpr auto kGlm4 = words_and_gaps(repeat(splitting::is_number, 1, 3));

constexpr auto kTrailing = sequence(repeat(splitting::is_space), end_of_line);

template <const auto& part>
std::optional<std::size_t> match_part(const Subject& subject, std::size_t at) {
  return match(part, {subject.text}, at);
}

// Remembers failures of parts that would otherwise scan far ahead again and again.
template <const auto& part>
std::optional<std::size_t> match_remembered(const Subject& subject, std::size_t at) {
  return match(part, subject, at);
}

struct Expression {
  const char* text;
  Match match;
};
#define LAMPLIGHTER_GPT2 R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S))"
#define LAMPLIGHTER_WORDS R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N})"
#define LAMPLIGHTER_GAPS R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"

// Expressions of the published files and equivalent spellings. The GPT-2 expression without its last
// alternative skips single spaces, but a split still makes them pieces.
const Expression kExpressions[] = {
    {"<sentinel:[0-9]+>", match_part<kSentinel>},
    {"(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z", match_part<kImage>},
    {"([\t\n]|    |  )", match_part<kSpaces>},
    {R"(([\t\n]|    |  ))", match_part<kSpaces>},
    {R"(\p{N})", match_part<kNumber>},
    {R"(\p{P})", match_part<kPunctuation>},
    {R"([\p{P}!-/:-@\[-`{-~])", match_part<kMark>},
    {R"(\s+$)", match_remembered<kTrailing>},
    {LAMPLIGHTER_GPT2, match_part<kGpt2>},
    {LAMPLIGHTER_GPT2 R"(|\s+)", match_part<kGpt2>},
    {LAMPLIGHTER_WORDS LAMPLIGHTER_GAPS, match_part<kQwen>},
    {LAMPLIGHTER_WORDS "{1,3}" LAMPLIGHTER_GAPS, match_part<kGlm4>},
};

constexpr auto kStageDigit = one(splitting::is_digit_of_stage);
constexpr auto kStageDigits = repeat(splitting::is_digit_of_stage);
constexpr auto kStagePunctuation = one(splitting::is_punctuation_of_stage);

BpePretokenizer::Stage find_expression(JsonReader& pattern) {
  const std::string text = pattern.text("Regex");
  for (const Expression& known : kExpressions) {
    if (text == known.text) return known.match;
  }
  if (const auto by_class = read_class_expression(text))
    return [by_class](const Subject& subject, std::size_t at) { return (*by_class)(subject.text, at); };
  pattern.reject("Regex",
                 "one of the regular expressions this program knows (Chameleon's, GPT-2's, DeepSeek's, "
                 "Qwen2.5's and GLM-4's)");
}

void expect_flag(JsonReader& object, const char* key, bool expected) {
  if (object.boolean(key) != expected) object.reject(key, expected ? "true" : "false");
}

}  // namespace

BpePretokenizer::BpePretokenizer(JsonReader& file) {
  add(file.object("pre_tokenizer"));
  if (!byte_level_) file.reject("pre_tokenizer", "a ByteLevel stage at its end");
}

void BpePretokenizer::add(JsonReader stage) {
  const std::string type = stage.choice("type", {"Sequence", "Split", "Digits", "Punctuation", "ByteLevel"});
  if (byte_level_) stage.fail("no stage can follow ByteLevel");
  if (type == "Sequence") {
    for (const JsonReader& part : stage.objects("pretokenizers")) add(part);
  } else if (type == "Split") {
    add_split(stage);
  } else if (type == "Digits") {
    const bool single = stage.boolean("individual_digits");
    stages_.emplace_back(single ? match_part<kStageDigit> : match_part<kStageDigits>);
  } else if (type == "Punctuation") {
    if (stage.has("behavior")) stage.choice("behavior", {"Isolated"});
    stages_.emplace_back(match_part<kStagePunctuation>);
  } else {
    add_byte_level(stage);
  }
  stage.finish();
}

void BpePretokenizer::add_split(JsonReader& stage) {
  stage.choice("behavior", {"Isolated"});
  expect_flag(stage, "invert", false);
  JsonReader pattern = stage.object("pattern");
  if (pattern.has("Regex")) {
    stages_.emplace_back(find_expression(pattern));
  } else {
    const std::u32string wanted = decode_utf8(pattern.text("String"));
    if (wanted.empty()) pattern.reject("String", "at least one character");
    stages_.emplace_back([wanted](const Subject& subject, std::size_t at) {
      return match(literal(wanted), {subject.text}, at);
    });
  }
  pattern.finish();
}

void BpePretokenizer::add_byte_level(JsonReader& stage) {
  expect_flag(stage, "add_prefix_space", false);
  if (stage.has("trim_offsets")) stage.boolean("trim_offsets");  // offsets are not computed
  if (!stage.has("use_regex") || stage.boolean("use_regex")) stages_.emplace_back(match_part<kGpt2>);
  byte_level_ = true;
}

std::vector<Text> BpePretokenizer::split(Text text) const {
  std::vector<Text> pieces{text}, parts;
  for (const Stage& stage : stages_) {
    parts.clear();
    for (const Text piece : pieces) {
      Memory memory(piece.size());
      std::size_t begin = 0;  // of the text between matches
      for (std::size_t at = 0; at < piece.size();) {
        const auto end = stage({piece, &memory}, at);
        if (!end) {
          ++at;
          continue;
        }
        if (begin < at) parts.push_back(piece.substr(begin, at - begin));
        parts.push_back(piece.substr(at, *end - at));
        begin = at = *end;
      }
      if (begin < piece.size()) parts.push_back(piece.substr(begin));
    }
    pieces.swap(parts);
  }
  return pieces;
}

}  // namespace lamplighter

#include "text/cleaning.h"

#include <algorithm>

#include "base/utf8.h"
#include "lamplighter/error.h"
#include "text/html.h"
#include "text/pattern.h"
#include "text/repair.h"
#include "text/unicode.h"

namespace lamplighter {
namespace {

using namespace pattern;

bool is_letter(char32_t c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_alphanumeric(char32_t c) {
  return is_letter(c) || (c >= '0' && c <= '9');
}
bool is_letter_or_digit(char32_t c) {
  return is_letter(c) || is_digit(c);
}
bool is_not_space(char32_t c) {
  return !is_space(c);
}
bool is_quote(char32_t c) {
  return c == '"' || c == '\'';
}
bool is_dot(char32_t c) {
  return c == '.';
}
bool is_hyphen_or_underscore(char32_t c) {
  return c == '-' || c == '_';
}

constexpr Text kFileEndings[] = {U"png", U"jpg", U"jpeg", U"bmp", U"webp", U"eps", U"pdf", U"apk", U"mp4"};
constexpr Text kDomains[] = {U"com", U"co", U"ru", U"net", U"org", U"edu", U"gov", U"it"};

// Decodes "+" to a space and "%41" to a byte of UTF-8.
std::u32string percent_decode(Text text) {
  const auto figure = [](char32_t c) {
    return c >= '0' && c <= '9'                                   ? static_cast<int>(c - '0')
           : (c | 0x20U) >= 'a' && (c | 0x20U) <= 'f' && c < 0x80 ? static_cast<int>((c | 0x20U) - 'a') + 10
                                                                  : -1;
  };
  std::u32string result;
  std::string bytes;  // pending ASCII, decoded together
  const auto flush = [&] {
    result += decode_utf8(bytes);
    bytes.clear();
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char32_t c = text[i];
    if (c == '%' && i + 2 < text.size() && figure(text[i + 1]) >= 0 && figure(text[i + 2]) >= 0) {
      bytes += static_cast<char>(figure(text[i + 1]) * 16 + figure(text[i + 2]));
      i += 2;
    } else if (c < 0x80) {
      bytes += c == '+' ? ' ' : static_cast<char>(c);
    } else {
      flush();
      result += c;
    }
  }
  flush();
  return result;
}

// One run of the cleaning, a member a step.
class Cleaner {
 public:
  explicit Cleaner(std::size_t* steps) : steps_(steps) {}

  std::u32string run(Text caption);

 private:
  template <class Pattern>
  std::u32string substitute(Text text, const Pattern& part, Text replacement = {}) {
    return pattern::substitute(text, part, replacement, steps_);
  }
  template <class Scheme>
  std::u32string drop_addresses(Text text, Scheme scheme);
  std::u32string drop_han(Text text);
  std::u32string unify_punctuation(Text text);
  std::u32string drop_numbers_and_files(Text text);
  std::u32string thin_punctuation(Text text);
  std::u32string drop_article_numbers(Text text);
  std::u32string drop_advertising(Text text);
  std::u32string drop_codes_and_sizes(Text text);
  std::u32string space_out(Text text);
  std::u32string trim(std::u32string text);

  std::size_t* steps_;  // of every search
};

// \b(?:SCHEME:(?:/{1,3}|[a-zA-Z0-9%])|[a-zA-Z0-9.-]+[.]DOMAIN[\w/-]*\b/?(?!@))
template <class Scheme>
std::u32string Cleaner::drop_addresses(Text text, Scheme scheme) {
  const auto address = sequence(
      scheme, literal(U":"),
      either(repeat(Among{U"/"}, 1, 3), one([](char32_t c) { return is_alphanumeric(c) || c == '%'; })));
  const auto host = repeat([](char32_t c) { return is_alphanumeric(c) || c == '.' || c == '-'; });
  const auto path = repeat([](char32_t c) { return is_word(c) || c == '/' || c == '-'; }, 0);
  const auto site = sequence(host, literal(U"."), words(kDomains), path, word_boundary, maybe(literal(U"/")),
                             not_before(U'@'));
  return substitute(text, sequence(word_boundary, either(address, site)));
}

std::u32string Cleaner::drop_han(Text text) {
  return substitute(text, one(Between{0x31C0, 0x9FFF}));  // strokes to unified ideographs, without a gap
}

std::u32string Cleaner::unify_punctuation(Text text) {
  constexpr Text dashes =
      U"-\u058A\u05BE\u1400\u1806\u2010\u2011\u2012\u2013\u2014\u2015\u2E17\u2E1A\u2E3A\u2E3B\u2E40\u301C"
      U"\u3030\u30A0"
      U"\uFE31\uFE32\uFE58\uFE63\uFF0D";
  std::u32string result = substitute(text, repeat(Among{dashes}), U"-");
  result = substitute(result, one(Among{U"`\u00B4\u00AB\u00BB\u201C\u201D\u00A8"}), U"\"");
  return substitute(result, one(Among{U"\u2018\u2019"}), U"'");
}

std::u32string Cleaner::drop_numbers_and_files(Text text) {
  std::u32string result = substitute(text, sequence(literal(U"&quot"), maybe(literal(U";"))));
  result = substitute(result, literal(U"&amp"));
  const auto group = repeat(is_digit, 1, 3);
  const auto dot = literal(U".");
  result = substitute(result, sequence(group, dot, group, dot, group, dot, group), U" ");  // IPv4 addresses
  result = substitute(
      result, sequence(one(is_digit), literal(U":"), repeat(is_digit, 2, 2), repeat(is_space), end_of_text));
  result = substitute(result, literal(U"\\n"), U" ");
  result = substitute(result, sequence(literal(U"#"), repeat(is_digit, 1, 3), word_boundary));
  result = substitute(result, sequence(literal(U"#"), repeat(is_digit, 5), word_boundary));
  result = substitute(result, sequence(word_boundary, repeat(is_digit, 6), word_boundary));
  return substitute(result, sequence(repeat(is_not_space), literal(U"."), words(kFileEndings)));
}

std::u32string Cleaner::thin_punctuation(Text text) {
  std::u32string result = substitute(text, repeat(is_quote, 2), U"\"");
  result = substitute(result, repeat(is_dot, 2), U" ");
  result = substitute(
      result,
      repeat(Among{U"#\u00AE\u2022\u00A9\u2122&@\u00B7\u00BA\u00BD\u00BE\u00BF\u00A1\u00A7~)(][}{|\\/*"}),
      U" ");
  result = substitute(result, sequence(repeat(is_space), literal(U"."), repeat(is_space)), U" ");
  if (std::count_if(result.begin(), result.end(), is_hyphen_or_underscore) > 3) {
    std::replace_if(result.begin(), result.end(), is_hyphen_or_underscore, U' ');
  }
  return result;
}

// Drops article numbers: jc6640, jc6640vc, 6640vc231.
std::u32string Cleaner::drop_article_numbers(Text text) {
  const auto letters = repeat(is_letter), digits = repeat(is_digit);
  std::u32string result = substitute(
      text, sequence(word_boundary, repeat(is_letter, 1, 3), repeat(is_digit, 3, 15), word_boundary));
  result = substitute(result, sequence(word_boundary, letters, digits, letters, word_boundary));
  return substitute(result, sequence(word_boundary, digits, letters, digits, word_boundary));
}

std::u32string Cleaner::drop_advertising(Text text) {
  const auto space = one(is_space), spaces = repeat(is_space);
  std::u32string result =
      substitute(text, sequence(maybe(sequence(literal(U"worldwide"), spaces)),
                                maybe(sequence(literal(U"free"), spaces)), literal(U"shipping")));
  result = substitute(result, sequence(maybe(sequence(literal(U"free"), space)), literal(U"download"),
                                       maybe(sequence(space, literal(U"free")))));
  result = substitute(result, sequence(word_boundary, literal(U"click"), word_boundary, space,
                                       either(literal(U"for"), literal(U"on")), space, repeat(is_word)));
  result = substitute(result, sequence(word_boundary, words(kFileEndings),
                                       maybe(sequence(space, literal(U"image"), maybe(literal(U"s"))))));
  return substitute(result,
                    sequence(word_boundary, literal(U"page"), spaces, repeat(is_digit), word_boundary));
}

std::u32string Cleaner::drop_codes_and_sizes(Text text) {
  const auto letters = repeat(is_letter), digits = repeat(is_digit);
  const auto dot = maybe(literal(U"."));
  // Codes like j2d1a2a.
  const std::u32string result =
      substitute(text,
                 sequence(word_boundary, repeat(is_digit, 0), letters, digits, letters, digits,
                          repeat(is_letter_or_digit, 0), word_boundary),
                 U" ");
  // Sizes like 1920x1080, with Latin x, Cyrillic kha or a multiplication sign.
  return substitute(
      result, sequence(word_boundary, digits, dot, repeat(is_digit, 0), one(Among{U"x\u0445\u00D7"}), digits,
                       dot, repeat(is_digit, 0), word_boundary));
}

std::u32string Cleaner::space_out(Text text) {
  std::u32string result =
      substitute(text, sequence(word_boundary, repeat(is_space), literal(U":"), repeat(is_space)), U": ");
  const auto not_digit = [](char32_t c) { return !is_digit(c); };
  result = transform(
      result, sequence(one(not_digit), one(Among{U",./"}), word_boundary),
      [](Text found) { return std::u32string(found) + U' '; }, steps_);
  return substitute(result, repeat(is_space), U" ");
}

std::u32string Cleaner::trim(std::u32string text) {
  if (text.size() > 2 && is_quote(text.front()) && is_quote(text.back()))
    text = text.substr(1, text.size() - 2);
  text = substitute(text, sequence(start_of_text, one(Among{U"'_,-:;"})));
  text = substitute(text, sequence(one(Among{U"'_,-:+"}), end_of_text));
  return substitute(text, sequence(start_of_text, literal(U"."), repeat(is_not_space), end_of_text));
}

std::u32string Cleaner::run(Text caption) {
  std::u32string text = to_lower(strip(percent_decode(caption)));
  text = substitute(text, literal(U"<person>"), U"person");
  text = drop_addresses(text, sequence(literal(U"http"), maybe(literal(U"s"))));
  text = drop_addresses(text, literal(U"www"));
  text = html_text(text, steps_);
  text = substitute(text, sequence(literal(U"@"), repeat(is_word), word_boundary));
  text = drop_han(text);
  text = unify_punctuation(text);
  text = drop_numbers_and_files(text);
  text = thin_punctuation(text);
  text = strip(unescape_html(unescape_html(repair_text(text, steps_))));
  text = drop_article_numbers(text);
  text = drop_advertising(text);
  text = drop_codes_and_sizes(text);
  return strip(trim(space_out(text)));
}

}  // namespace

std::u32string clean_caption(std::u32string_view caption, std::size_t* steps) {
  return Cleaner(steps).run(caption);
}

void check_caption(std::string_view caption, const std::string& where) {
  if (caption.size() > kMaxCaptionBytes) {
    throw Error(ExitCode::input, where + ": got " + std::to_string(caption.size()) +
                                     " bytes, expected at most " + std::to_string(kMaxCaptionBytes));
  }
  const std::size_t bad = find_invalid_utf8(caption);
  if (bad != std::string_view::npos) {
    throw Error(ExitCode::input, where + ": byte " + std::to_string(bad + 1) + " is not valid UTF-8");
  }
}

std::string clean_text(std::string_view caption, const std::string& cleaning, std::size_t* steps) {
  if (cleaning == "none") return std::string(caption);
  const std::u32string text = decode_utf8(caption);
  if (cleaning == "lower") return encode_utf8(strip(to_lower(text)));
  if (cleaning == "llamagen") {
    const std::u32string once = clean_caption(text, steps);
    return encode_utf8(once == text ? once : clean_caption(once, steps));
  }
  throw Error(ExitCode::bundle, "caption cleaning: got " + cleaning + ", expected llamagen, lower or none");
}

}  // namespace lamplighter

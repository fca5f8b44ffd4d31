#pragma once

#include <string>
#include <string_view>

namespace lamplighter {

// Character properties and mappings as Python's str and re have them: captions must be cleaned exactly as
// they were for training. Tables: unicode_tables.inc.

bool is_word(char32_t code);   // \w: letters, numbers, underscore
bool is_digit(char32_t code);  // \d: decimal digits of any script
bool is_space(char32_t code);  // \s and str.strip()

std::u32string to_lower(std::u32string_view text);  // str.lower()
std::u32string strip(std::u32string_view text);     // str.strip()

// Classes as the `tokenizers` library has them: its regular expressions and its own stages follow Unicode
// versions that differ from Python's and from each other.
namespace splitting {

bool is_letter(char32_t code);       // \p{L}
bool is_number(char32_t code);       // \p{N}
bool is_punctuation(char32_t code);  // \p{P}
bool is_space(char32_t code);        // \s

bool is_digit_of_stage(char32_t code);        // what Digits looks for: any numeric character
bool is_punctuation_of_stage(char32_t code);  // what Punctuation looks for: ASCII's, and Unicode's

std::u32string compose(std::u32string_view text);  // what the normaliser NFC makes of a text

}  // namespace splitting

// Canonical composition (Unicode normalisation form C).
std::u32string compose(std::u32string_view text);

// Fullwidth and halfwidth forms, and the ideographic space, become ordinary characters.
std::u32string unify_width(std::u32string_view text);

// UTF-8 text of an HTML 5 entity, named without "&", with or without the closing ";"; empty when there is
// none.
std::string_view find_entity(std::string_view name);

}  // namespace lamplighter

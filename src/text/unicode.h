#pragma once

#include <string>
#include <string_view>

namespace lamplighter {

// Character properties and mappings of Python's str and re: captions must be cleaned exactly as in training.
// The tables are in unicode_tables.inc.

bool is_word(char32_t code);   // \w: letters, numbers, underscore
bool is_digit(char32_t code);  // \d: decimal digits of any script
bool is_space(char32_t code);  // \s and str.strip()

// Accents, joiners, tones of emoji and other marks that belong to the character before them; also some
// punctuation inside words. (The property Case_Ignorable.)
bool modifies(char32_t code);

std::u32string to_lower(std::u32string_view text);  // str.lower()
std::u32string strip(std::u32string_view text);     // str.strip()

// Parts of graphemes, the characters that readers see (Unicode annex 29), as far as single characters decide.
bool extends_grapheme(char32_t code);  // belongs to the grapheme of the character before it
bool ends_grapheme(char32_t code);     // a control character or line end, which nothing extends

// Classes of the `tokenizers` library. Its regular expressions and its own stages follow Unicode versions
// that differ from Python's and from each other.
namespace splitting {

bool is_letter(char32_t code);       // \p{L}
bool is_number(char32_t code);       // \p{N}
bool is_punctuation(char32_t code);  // \p{P}
bool is_space(char32_t code);        // \s

bool is_digit_of_stage(char32_t code);        // for the stage Digits: any numeric character
bool is_punctuation_of_stage(char32_t code);  // for the stage Punctuation: ASCII and Unicode punctuation

std::u32string compose(std::u32string_view text);  // the normalizer NFC

}  // namespace splitting

// Composes canonically (Unicode normalization form C).
std::u32string compose(std::u32string_view text);

// Maps fullwidth and halfwidth forms and the ideographic space to ordinary characters.
std::u32string unify_width(std::u32string_view text);

// UTF-8 text of an HTML 5 entity. `name` has no "&"; the closing ";" is optional. Empty for unknown names.
std::string_view find_entity(std::string_view name);

}  // namespace lamplighter

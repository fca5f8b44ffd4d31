#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lamplighter {

// Normalizes text as the fast T5 tokenizer of Hugging Face's transformers does, which LlamaGen and others
// load. It uses the table of a SentencePiece model, but not as SentencePiece does:
// - SentencePiece replaces the longest sequence that the table has. The fast tokenizer looks up a grapheme of
//   less than 6 bytes as a whole, takes the shortest entry that it begins with, and drops the rest of the
//   grapheme; it looks up other graphemes character by character.
// - It splits words at all white space of Unicode, U+0085 included.
class T5Normalizer {
 public:
  // Takes the table out of a model. `model` becomes one that does not normalize. Text stays as it is when the
  // model has no table. Throws std::invalid_argument for a malformed model or table.
  explicit T5Normalizer(std::string& model);

  // White space in the result is U+0020 alone. `origins` becomes, for every byte of the result, the byte of
  // `text` at which its grapheme begins.
  std::string normalize(std::string_view text, std::vector<std::size_t>* origins = nullptr) const;

 private:
  std::string normalize_grapheme(std::u32string_view grapheme) const;
  // Appends the entry that `part` begins with. Returns false when there is none.
  bool append_entry(std::string_view part, std::string& result) const;

  std::vector<std::uint32_t> units_;  // of a double-array trie (Darts-clone)
  std::string entries_;               // texts that end with a zero byte
};

}  // namespace lamplighter

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lamplighter {

// Byte-level BPE as a Hugging Face `tokenizer.json` describes it; Meta's `text_tokenizer.json` is the same
// format. Ids and texts equal those of the `tokenizers` library called with add_special_tokens=False: the
// file's `post_processor` is not applied, no beginning-of-sequence id is added. Thread-safe after
// construction.
class BpeTokenizer {
 public:
  // Throws Error(ExitCode::bundle) when the file cannot be read or asks for what is not done here: a
  // normalizer but NFC, truncation, padding, dropout, ignored merges, stages or expressions that
  // BpePretokenizer does not know, added tokens that take in spaces or only match whole words, a decoder
  // other than ByteLevel.
  explicit BpeTokenizer(const std::string& path);
  ~BpeTokenizer();
  BpeTokenizer(BpeTokenizer&&) noexcept;
  BpeTokenizer& operator=(BpeTokenizer&&) noexcept;

  // Ids of a UTF-8 text, without a limit. Every ill-formed sequence counts as one U+FFFD. Added tokens in the
  // text become their ids.
  std::vector<std::int64_t> encode(std::string_view text) const;

  // UTF-8 text of ids; ill-formed sequences become U+FFFD, ids that nothing belongs to are passed over.
  std::string decode(const std::vector<std::int64_t>& ids, bool skip_special = false) const;

  // Id of an entry or added token as the file spells it ("<reserved08706>", "Ġa").
  std::optional<std::int64_t> find(const std::string& token) const;

  std::int64_t size() const;  // largest id + 1

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace lamplighter

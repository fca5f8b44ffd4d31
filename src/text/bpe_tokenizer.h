#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lamplighter {

// Byte-level BPE from a Hugging Face `tokenizer.json`; Meta's `text_tokenizer.json` has the same format. Ids
// and texts equal the results of the `tokenizers` library with add_special_tokens=False: the `post_processor`
// is not applied and no beginning-of-sequence id is added. Thread-safe after construction.
class BpeTokenizer {
 public:
  // Throws Error(ExitCode::bundle) when the file cannot be read or needs an unsupported feature: a normalizer
  // other than NFC, truncation, padding, dropout, ignored merges, a stage or expression unknown to
  // BpePretokenizer, added tokens that strip spaces or match whole words only, a decoder other than
  // ByteLevel.
  explicit BpeTokenizer(const std::string& path);
  ~BpeTokenizer();
  BpeTokenizer(BpeTokenizer&&) noexcept;
  BpeTokenizer& operator=(BpeTokenizer&&) noexcept;

  // Encodes UTF-8 text of any length. Every ill-formed sequence counts as one U+FFFD. Added tokens in the
  // text become their ids.
  std::vector<std::int64_t> encode(std::string_view text) const;

  // Decodes ids to UTF-8. Ill-formed sequences become U+FFFD; unknown ids are skipped.
  std::string decode(const std::vector<std::int64_t>& ids, bool skip_special = false) const;

  // Bytes that ids stand for. The bytes of all ids of a text are the text that `encode` splits, composed.
  std::string bytes(const std::vector<std::int64_t>& ids, bool skip_special = false) const;

  // Id of an entry or added token, spelled as in the file ("<reserved08706>", "Ġa").
  std::optional<std::int64_t> find(const std::string& token) const;

  std::int64_t size() const;  // largest id + 1

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace lamplighter

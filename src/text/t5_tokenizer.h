#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lamplighter/bundle.h"

namespace lamplighter {

struct T5Caption {
  std::vector<std::int64_t> ids;
  std::string cut;  // the end that is not read, where it has more ids than the bundle takes: unread_end
};

// Encodes captions for T5: SentencePiece pieces, sentinels <extra_id_k> after them, </s> at the end. Ids
// equal the ids of the Hugging Face fast tokenizer, also for texts that contain </s>, <pad>, <unk> or a
// sentinel.
class T5Tokenizer {
 public:
  // `model` is the SentencePiece file. Throws Error(ExitCode::bundle) when it cannot be read or when its ids
  // of </s>, <pad> and <unk> differ from the settings.
  T5Tokenizer(const std::string& model, const TokenizerEntry& settings);
  ~T5Tokenizer();
  T5Tokenizer(T5Tokenizer&&) noexcept;
  T5Tokenizer& operator=(T5Tokenizer&&) noexcept;

  // Cleans a caption as the bundle says and returns at most max_length ids, </s> last, without padding.
  T5Caption encode(std::string_view caption) const;

  // Encodes a clean text of any length, without </s>.
  std::vector<std::int64_t> pieces(std::string_view text) const;

  std::int64_t vocabulary() const;  // pieces and sentinels

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace lamplighter

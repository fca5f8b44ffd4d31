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
  std::string cut;  // the cleaned caption's end, where it had more ids than a bundle takes
};

// Captions to T5 ids: SentencePiece pieces, sentinels <extra_id_k> above them, </s> at the end. Ids equal
// those of the Hugging Face fast tokenizer, also for texts that contain </s>, <pad>, <unk> or a sentinel.
class T5Tokenizer {
 public:
  // `model` is the SentencePiece file. Throws Error(ExitCode::bundle) when it cannot be read or its own ids
  // of </s>, <pad> and <unk> differ from the settings.
  T5Tokenizer(const std::string& model, const TokenizerEntry& settings);
  ~T5Tokenizer();
  T5Tokenizer(T5Tokenizer&&) noexcept;
  T5Tokenizer& operator=(T5Tokenizer&&) noexcept;

  // Cleans a caption as the bundle says and gives at most max_length ids, </s> last, without padding.
  T5Caption encode(std::string_view caption) const;

  // All pieces of a text that is clean already, without </s> and without a limit.
  std::vector<std::int64_t> pieces(std::string_view text) const;

  std::int64_t vocabulary() const;  // pieces and sentinels

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace lamplighter

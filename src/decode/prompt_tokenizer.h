#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lamplighter/bundle.h"
#include "lamplighter/options.h"
#include "text/bpe_tokenizer.h"
#include "text/t5_tokenizer.h"

namespace lamplighter {

// One prompt as ids: of the text encoder, the class, or of the target itself.
struct PromptIds {
  std::vector<std::int64_t> ids;
  std::vector<std::int64_t> unconditional = {};  // prompts of tokens: without the caption, or what it is not
  std::string cut = {};                          // the caption's end, where the bundle does not take it all

  // Rows that the prompt, or that of the unconditional half, has in the target's cache.
  std::int64_t rows() const { return static_cast<std::int64_t>(std::max(ids.size(), unconditional.size())); }
};

// Turns requests into ids with the tokenizer of the bundle; needs no weights.
class PromptTokenizer {
 public:
  // Throws Error(ExitCode::bundle).
  explicit PromptTokenizer(const Manifest& manifest);
  // Throws Error(ExitCode::input) when the prompt has more tokens than the bundle takes, and
  // Error(ExitCode::bundle) for a tokenizer of another model.
  PromptIds encode(const Request& request, const Grid& grid) const;

 private:
  // The caption in its template.
  std::string prompt_text(const Request& request, const Grid& grid) const;
  // Ids of a text that the target embeds.
  std::vector<std::int64_t> encode_text(const std::string& text) const;
  // Ids of a text in a half of guidance. Throws Error(ExitCode::input) when `half`, which has all ids of that
  // half, is longer than the bundle takes.
  void check_length(const char* name, std::size_t text, std::size_t half) const;
  PromptIds encode_tokens(const Request& request, const Grid& grid) const;

  PromptEntry prompt_;
  std::int64_t vocabulary_ = 0;  // ids that the target embeds
  std::int64_t max_length_ = 0;  // ids of a text
  std::unique_ptr<T5Tokenizer> t5_;
  std::unique_ptr<BpeTokenizer> bpe_;
};

}  // namespace lamplighter

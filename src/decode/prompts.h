#pragma once

#include <memory>
#include <vector>

#include "bundle/target.h"
#include "decode/decode.h"
#include "text/bpe_tokenizer.h"
#include "text/t5_tokenizer.h"

namespace lamplighter {

// One prompt: what a target's embed_condition takes, right padded to the bundle's prompt length, or ids.
struct Condition {
  at::Tensor features;                                     // [1, T, C], or class ids int64 [1, 1]
  at::Tensor mask;                                         // int64 [1, T]
  std::vector<std::int64_t> ids = {}, unconditional = {};  // prompts of tokens, with and without the caption
};

// Turns requests into conditions with what the bundle offers: caption -> ids -> text encoder, class ids, or
// caption -> ids of the target itself.
class PromptEncoder {
 public:
  // Loads the tokenizer and, for text features, the text encoder. Throws Error(ExitCode::bundle).
  PromptEncoder(const Manifest& manifest, const Placement& placement);
  // Throws Error(ExitCode::input) when the prompt has more tokens than the bundle takes, and
  // Error(ExitCode::bundle) for a tokenizer of another model; cheap.
  void check(const Request& request, const Grid& grid) const;
  Condition encode(const Request& request, const Grid& grid) const;
  // Rows that its prompt, or that of the unconditional half, has in the target's cache.
  std::int64_t rows(const Request& request, const Grid& grid) const;

 private:
  Condition encode_tokens(const Request& request, const Grid& grid) const;

  PromptEntry prompt_;
  std::int64_t vocabulary_ = 0;  // ids that the target embeds
  std::int64_t max_length_ = 0;  // ids of a text
  Placement placement_;
  std::unique_ptr<T5Tokenizer> t5_;
  std::unique_ptr<TextEncoder> encoder_;
  std::unique_ptr<BpeTokenizer> bpe_;
};

// Prompt rows of the target: interleaved pairs when `guided`, else the conditional rows alone. Prompts are
// embedded one by one: library products give other roundings for other batch sizes, and a picture must not
// depend on its batch. padded: with the padding's rows, which some drafters read (DrafterEntry).
Prompts embed_prompts(const Target& target, const std::vector<Condition>& conditions, bool guided,
                      bool padded = false);

}  // namespace lamplighter

#pragma once

#include <algorithm>
#include <memory>
#include <string>
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

// One prompt as ids: of the text encoder, the class, or of the target itself.
struct PromptIds {
  std::vector<std::int64_t> ids;
  std::vector<std::int64_t> unconditional = {};  // prompts of tokens: without the caption
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
  PromptIds encode_tokens(const Request& request, const Grid& grid) const;

  PromptEntry prompt_;
  std::int64_t vocabulary_ = 0;  // ids that the target embeds
  std::int64_t max_length_ = 0;  // ids of a text
  std::unique_ptr<T5Tokenizer> t5_;
  std::unique_ptr<BpeTokenizer> bpe_;
};

// Turns ids into conditions, with the bundle's text encoder where it has one.
class PromptEncoder {
 public:
  // Loads the text encoder. Throws Error(ExitCode::bundle).
  PromptEncoder(const Manifest& manifest, const Placement& placement);
  Condition encode(const PromptIds& prompt) const;

 private:
  std::string kind_;
  std::int64_t length_ = 0;  // rows reserved for the prompt
  Placement placement_;
  std::unique_ptr<TextEncoder> encoder_;
};

// Prompt rows of the target: interleaved pairs when `guided`, else the conditional rows alone. Prompts are
// embedded one by one: library products give other roundings for other batch sizes, and a picture must not
// depend on its batch. padded: with the padding's rows, which some drafters read (DrafterEntry).
Prompts embed_prompts(const Target& target, const std::vector<Condition>& conditions, bool guided,
                      bool padded = false);

}  // namespace lamplighter

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bundle/modules/target.h"
#include "decode/decode.h"
#include "decode/prompt_tokenizer.h"

namespace lamplighter {

// One prompt: what a target's embed_condition takes, right padded to the bundle's prompt length, or ids.
struct Condition {
  at::Tensor features;                                     // [1, T, C], or class ids int64 [1, 1]
  at::Tensor mask;                                         // int64 [1, T]
  std::vector<std::int64_t> ids = {}, unconditional = {};  // prompts of tokens, with and without the caption
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
// depend on its batch. padded: with the padding's rows, which some drafters read (DrafterEntry). A drafter
// that is a model embeds them, too.
Prompts embed_prompts(const Models& models, const std::vector<Condition>& conditions, bool guided,
                      bool padded = false);

}  // namespace lamplighter

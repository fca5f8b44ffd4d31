#pragma once

#include <memory>
#include <vector>

#include "bundle/target.h"
#include "decode/decode.h"
#include "text/t5_tokenizer.h"

namespace lamplighter {

// Features of one prompt, right padded to the bundle's prompt length: what a target's embed_condition takes.
struct Condition {
  at::Tensor features;  // [1, T, C], or class ids int64 [1, 1]
  at::Tensor mask;      // int64 [1, T]
};

// Turns requests into conditions with what the bundle offers: caption -> ids -> text encoder, or class ids.
class PromptEncoder {
 public:
  PromptEncoder(const Manifest& manifest, const Placement& placement);
  Condition encode(const Request& request) const;

 private:
  PromptEntry prompt_;
  Placement placement_;
  std::unique_ptr<T5Tokenizer> tokenizer_;
  std::unique_ptr<TextEncoder> encoder_;
};

// Prompt rows of the target: interleaved pairs when `guided`, else the conditional rows alone. Prompts are
// embedded one by one: library products give other roundings for other batch sizes, and a picture must not
// depend on its batch.
Prompts embed_prompts(const Target& target, const std::vector<Condition>& conditions, bool guided);

}  // namespace lamplighter

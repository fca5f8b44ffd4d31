#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bundle/modules/target.h"
#include "decode/decode.h"
#include "decode/prompt_tokenizer.h"

namespace lamplighter {

// One prompt: the input of the target's embed_condition, right padded to the bundle's prompt length, or ids.
struct Condition {
  at::Tensor features;                                     // [1, T, C], or class ids int64 [1, 1]
  at::Tensor mask;                                         // int64 [1, T]
  std::vector<std::int64_t> ids = {}, unconditional = {};  // of tokens, with and without the caption
};

// Turns ids into conditions with the bundle's text encoder, if it has one.
class PromptEncoder {
 public:
  // Loads the text encoder. Throws Error(ExitCode::bundle).
  PromptEncoder(const Manifest& manifest, const Placement& placement);
  Condition encode(const PromptIds& prompt) const;

 private:
  std::string kind_;
  std::int64_t length_ = 0;    // positions reserved for the prompt
  std::int64_t features_ = 0;  // width of the text encoder's features
  Placement placement_;
  std::unique_ptr<TextEncoder> encoder_;
};

// Embeds prompts for the target: interleaved pairs when `guided`, else the conditional ones alone. Prompts
// are embedded one by one, because matrix products round differently at other batch sizes and an image must
// not depend on its batch. `padded`: with the rows of the padding, which some drafters read
// (DraftModelEntry). A draft model that embeds conditions itself embeds them, too.
Prompts embed_prompts(const Models& models, const std::vector<Condition>& conditions, bool guided,
                      bool padded = false);

}  // namespace lamplighter

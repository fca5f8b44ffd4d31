#pragma once

#include <string>
#include <vector>

#include "decode/prompt_tokenizer.h"
#include "lamplighter/bundle.h"
#include "lamplighter/options.h"

namespace lamplighter {

// A line for the words of a caption that the bundle does not know, and one for an end that it does not read.
std::vector<std::string> caption_notes(const Manifest& manifest, const Request& request,
                                       const PromptIds& prompt);
// The same of an image that is complete: `cut` is Result::cut.
std::vector<std::string> caption_notes(const Manifest& manifest, const Request& request,
                                       const std::string& cut);

}  // namespace lamplighter

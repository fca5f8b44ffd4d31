#pragma once

#include <string>
#include <vector>

#include "decode/prompt_tokenizer.h"
#include "lamplighter/bundle.h"
#include "lamplighter/options.h"

namespace lamplighter {

// What of a caption the bundle does not know or does not take, in one line each.
std::vector<std::string> caption_notes(const Manifest& manifest, const Request& request,
                                       const PromptIds& prompt);

}  // namespace lamplighter

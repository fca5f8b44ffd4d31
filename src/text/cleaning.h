#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lamplighter {

// Longest caption in bytes. No tokenizer reads that far: what is longer is a mistake, not a caption.
inline constexpr std::size_t kMaxCaptionBytes = 32768;

// Throws Error(ExitCode::input) when a caption is no valid UTF-8 or too long. `where` names it ("prompt 2").
void check_caption(std::string_view caption, const std::string& where);

// Caption cleaning of a bundle: "llamagen" (LlamaGen's cleaning, which runs twice), "lower" (lower case,
// outer white space dropped) or "none". Throws Error(ExitCode::bundle) for another name.
std::string clean_text(std::string_view caption, const std::string& cleaning);

// One run of LlamaGen's caption cleaning (language/t5.py, inherited from DeepFloyd IF): web addresses,
// markup, file names, advertising and odd punctuation go. Text decoded with a wrong encoding is not repaired.
std::u32string clean_caption(std::u32string_view caption);

}  // namespace lamplighter

#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lamplighter {

// Longest caption in bytes. No tokenizer reads that far, so a longer text is a mistake.
inline constexpr std::size_t kMaxCaptionBytes = 32768;

// Throws Error(ExitCode::input) when a caption is too long or invalid UTF-8. `where` names it ("prompt 2").
void check_caption(std::string_view caption, const std::string& where);

// Applies a bundle's caption cleaning: "llamagen" (LlamaGen's cleaning, run twice), "lower" (lower case,
// stripped) or "none". Adds to *steps the characters that "llamagen" looks at, each time: its work, which
// must not grow faster than the caption. Throws Error(ExitCode::bundle) for another name.
std::string clean_text(std::string_view caption, const std::string& cleaning, std::size_t* steps = nullptr);

// Runs LlamaGen's caption cleaning once (language/t5.py, inherited from DeepFloyd IF). It removes web
// addresses, markup, file names, advertising and odd punctuation, and repairs encodings (repair.h).
std::u32string clean_caption(std::u32string_view caption, std::size_t* steps = nullptr);

}  // namespace lamplighter

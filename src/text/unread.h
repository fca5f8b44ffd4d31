#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lamplighter {

// Returns the end of a caption that a tokenizer does not read, from the start of the word in which it stops.
// `seen` is the text that the tokenizer splits, a cleaned caption; it stops after `read` bytes of it. The
// words are the user's own where cleaning changed only their case, else the cleaned ones. No code point,
// accented letter or emoji is split.
std::string unread_end(std::string_view caption, std::string_view seen, std::size_t read);

}  // namespace lamplighter

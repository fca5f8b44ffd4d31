#pragma once

#include <string>
#include <string_view>

namespace lamplighter {

// A text with control characters, line ends and characters that nobody sees or that turn the direction of
// text escaped as in C++ ("\n", "\x1b", "\u2028", "\u202e"), so that it stays one line, in order, and cannot
// control a terminal.
std::string escaped(std::string_view text);

// A user's value for a message: at most 80 bytes of it, cut between code points and marked with "...",
// escaped.
std::string excerpt_of(std::string_view value);
std::string quote(std::string_view value);  // between ' and '

// Makes a message one line of valid UTF-8 with the same escapes. A message above some 1,500 bytes loses its
// middle, because its end says what was expected.
std::string one_line(std::string_view message);

}  // namespace lamplighter

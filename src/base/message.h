#pragma once

#include <string>
#include <string_view>

namespace lamplighter {

// A value of a user for a message: at most 80 bytes of it, cut between code points with "..." behind them;
// control characters and ends of lines as a C++ string has them ("\n", "\x1b", "\u2028"), so that a message
// stays one line and no value ends it or speaks to a terminal.
std::string excerpt_of(std::string_view value);
std::string quote(std::string_view value);  // between ' and '

// A message as one line of valid UTF-8, escaped in the same way. One that is longer than some 1,500 bytes
// loses its middle: what was expected stands at its end.
std::string one_line(std::string_view message);

}  // namespace lamplighter

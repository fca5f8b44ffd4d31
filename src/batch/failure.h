#pragma once

#include <exception>
#include <string>

namespace lamplighter {

// First line of an error, without the stack traces of libraries.
std::string first_line(const std::exception& error);

// Whether an error ends the whole run; other errors only fail their image.
bool ends_run(const std::exception& error);

}  // namespace lamplighter

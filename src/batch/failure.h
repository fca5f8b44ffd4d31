#pragma once

#include <exception>
#include <string>

namespace lamplighter {

// What failed, without the stack traces that libraries bring along.
std::string first_line(const std::exception& error);

// Whether a failure ends the whole run, whatever picture it came with; others are that picture's own.
bool ends_run(const std::exception& error);

}  // namespace lamplighter

#pragma once

#include <stdexcept>
#include <string>

#include "lamplighter/api.h"

namespace lamplighter {

// Exit codes of the command-line tool; every error knows which one it leads to.
enum class ExitCode : int {
  ok = 0,
  usage = 2,         // flags
  input = 3,         // prompts, images, code files
  bundle = 4,        // model bundle
  device = 5,        // missing device or operator
  memory = 6,        // allocation failed
  output = 7,        // a result could not be written
  some_failed = 8,   // part of a set failed
  interrupted = 130  // SIGINT; SIGTERM gives 143
};

// The one exception type of the library. The message is one line: what failed, where, what was found,
// what was expected, and a hint where one helps.
class LAMPLIGHTER_API Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ExitCode code() const noexcept { return code_; }

 private:
  ExitCode code_;
};

}  // namespace lamplighter

#pragma once

#include <exception>
#include <functional>

#include "tools/terminal.h"

namespace lamplighter::cli {

// Gives the results of a long run to standard output and to files: what fails for one of them keeps no other
// from its result.
class Attempts {
 public:
  explicit Attempts(Terminal& terminal) : terminal_(terminal) {}

  // Runs an action now. Of several failures the first one is thrown by finish, others are printed.
  void make(const std::function<void()>& action) {
    try {
      action();
    } catch (const std::exception& error) {
      if (first_) return terminal_.complain(error.what());
      first_ = std::current_exception();
    }
  }

  void finish() const {
    if (first_) std::rethrow_exception(first_);
  }

 private:
  Terminal& terminal_;
  std::exception_ptr first_;
};

}  // namespace lamplighter::cli

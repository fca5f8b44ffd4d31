#pragma once

#include <cstddef>
#include <string>

#include "base/descriptor.h"
#include "base/limits.h"

namespace lamplighter {

// The lines of standard input while they come.
class LineStream {
 public:
  explicit LineStream(std::size_t most = limits::kInput);

  // All whole lines that are there, each with its end; waits for the first. At the end what is left, then "".
  // Throws Error(ExitCode::input) where more than `most` bytes wait, and when they cannot be read.
  std::string take();
  // Everything up to the end. Throws as take does.
  std::string take_rest();

 private:
  bool read_more(bool wait);  // false when nothing came

  Descriptor input_;
  std::size_t most_;
  std::string waiting_;
  bool ended_ = false;
};

}  // namespace lamplighter

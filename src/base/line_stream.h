#pragma once

#include <cstddef>
#include <string>

#include "base/descriptor.h"
#include "base/limits.h"

namespace lamplighter {

// Reads lines of standard input as they arrive.
class LineStream {
 public:
  explicit LineStream(std::size_t most = limits::kInput);

  // Returns all complete lines that have arrived, with their ends, and waits for the first one. At the end of
  // input it returns the rest, then "". Throws Error(ExitCode::input) on read errors and when more than
  // `most` bytes are pending.
  std::string take();
  // Returns everything up to the end. Throws like take.
  std::string take_rest();

 private:
  bool read_more(bool wait);  // false when nothing arrived

  Descriptor input_;
  std::size_t most_;
  std::string waiting_;
  bool ended_ = false;
};

}  // namespace lamplighter

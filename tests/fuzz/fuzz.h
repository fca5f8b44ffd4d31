#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <string_view>

#include "lamplighter/error.h"

// Shared by all fuzzers. A fuzzer feeds bytes to one reader and expects a result or an Error; anything else,
// e.g. a sanitizer report, is a finding.
namespace lamplighter::fuzz {

inline std::string_view text(const unsigned char* bytes, std::size_t size) {
  return {reinterpret_cast<const char*>(bytes), size};
}

template <class Use>
int meet(const Use& use) {
  try {
    use();
  } catch (const Error&) {
  }
  return 0;
}

// Path of an in-memory file with these bytes, valid until the next call.
inline std::string file_of(std::string_view bytes) {
  static const int file = ::memfd_create("fuzz", 0);
  if (file < 0 || ::ftruncate(file, 0) != 0 ||
      ::pwrite(file, bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    std::abort();
  return "/proc/self/fd/" + std::to_string(file);
}

}  // namespace lamplighter::fuzz

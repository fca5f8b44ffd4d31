#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <string_view>

#include "lamplighter/error.h"

// What all fuzzers share. Each is a file of its own: bytes in, and either a result or an Error comes out;
// anything else, also a sanitizer's complaint, is a finding.
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

// The path of a plain file in memory that holds these bytes until the next call.
inline std::string file_of(std::string_view bytes) {
  static const int file = ::memfd_create("fuzz", 0);
  if (file < 0 || ::ftruncate(file, 0) != 0 ||
      ::pwrite(file, bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    std::abort();
  return "/proc/self/fd/" + std::to_string(file);
}

}  // namespace lamplighter::fuzz

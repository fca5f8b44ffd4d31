#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace lamplighter {

// Whether the processor has instructions for SHA-256.
bool has_sha_instructions();

// Incremental SHA-256 (FIPS 180-4).
class Sha256 {
 public:
  explicit Sha256(bool instructions = has_sha_instructions()) : instructions_(instructions) {}
  void update(std::string_view bytes);
  std::string hex_digest();  // ends the stream; 64 lower-case hexadecimal digits

  static std::string of(std::string_view bytes);  // the digest of one text

 private:
  void compress(const unsigned char* blocks, std::size_t count);  // `count` blocks of 64 bytes

  [[maybe_unused]] bool instructions_;  // read on x86 alone
  std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<unsigned char, 64> pending_{};
  std::uint64_t length_ = 0;  // bytes seen
};

}  // namespace lamplighter

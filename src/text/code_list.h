#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lamplighter {

// Reads prompts that are lists of codes: numbers with white space or commas between them.
class CodeLists {
 public:
  // `file`: {"codes": how many there are, "lengths": how long a list may be, ascending}. Throws
  // Error(ExitCode::bundle).
  explicit CodeLists(const std::string& file);

  // Throws Error(ExitCode::input) where a word is none of the codes, and for a list of another length.
  std::vector<std::int64_t> encode(std::string_view prompt) const;
  // "81, 169 or 729 codes of 0..65535".
  std::string describe() const;

  std::int64_t codes() const { return codes_; }
  std::int64_t longest() const { return lengths_.back(); }

 private:
  std::int64_t parse(std::string_view word) const;

  std::int64_t codes_ = 0;
  std::vector<std::int64_t> lengths_;
};

// The prompt of an image's codes.
std::string code_list(const std::vector<std::int32_t>& codes);

}  // namespace lamplighter

#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace lamplighter {

// Vocabulary and merges of a byte-level BPE model (Radford et al. 2019, section 2.2): every byte of a piece
// is one of 256 printable characters, and neighbours are merged by rank, the lowest first.
class BpeModel {
 public:
  // `vocabulary`: an object of texts and ids. `merges`: an array of "left right" or ["left", "right"], best
  // first. `where` names the file in messages. Throws Error(ExitCode::bundle) when they are malformed, two
  // texts share an id, a byte that UTF-8 has is missing, or a merge has a part or a result that is no entry.
  BpeModel(const nlohmann::json& vocabulary, const nlohmann::json& merges, std::string where);

  // Appends the ids of one piece of UTF-8 text.
  void encode(std::string_view piece, std::vector<std::int64_t>& ids) const;

  std::optional<std::int64_t> find(const std::string& text) const;  // id of an entry, as the file spells it
  std::int64_t entries() const { return static_cast<std::int64_t>(ids_.size()); }
  const std::unordered_map<std::string, std::int32_t>& vocabulary() const { return ids_; }

 private:
  struct Merge {
    std::int32_t rank, id;
  };
  struct Symbol {
    std::int32_t id;
    std::int32_t previous, next;  // neighbours in the piece, -1 at its ends
    bool merged;                  // into the symbol before it
  };

  void read_vocabulary(const nlohmann::json& vocabulary);
  void read_merges(const nlohmann::json& merges);
  const Merge* find_merge(const std::vector<Symbol>& symbols, std::int32_t left) const;
  void merge(std::vector<Symbol>& symbols) const;
  [[noreturn]] void fail(const std::string& message) const;

  std::string where_;
  std::unordered_map<std::string, std::int32_t> ids_;
  std::array<std::int32_t, 256> byte_ids_{};         // -1: none, of bytes that UTF-8 does not have
  std::unordered_map<std::uint64_t, Merge> merges_;  // by left id * 2^32 + right id
};

// The character that stands for a byte in vocabulary entries: itself when it is printable Latin-1 other than
// the soft hyphen, else U+0100 and the following.
char32_t byte_character(unsigned char byte);

// The bytes an entry stands for; its own UTF-8 when a character of it stands for no byte.
std::string entry_bytes(std::string_view entry);

}  // namespace lamplighter

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

// Vocabulary and merges of a byte-level BPE model (Radford et al. 2019, section 2.2). Every byte of a piece
// is one of 256 printable characters. Neighbours are merged in order of rank.
class BpeModel {
 public:
  // `vocabulary` maps texts to ids. `merges` lists "left right" or ["left", "right"], best first. `where`
  // names the file in messages. Throws Error(ExitCode::bundle) when they are malformed, when two texts share
  // an id, when a byte of UTF-8 has no entry, or when a part or the result of a merge has none. With `whole`
  // a piece that is an entry gets its id, which merges may not reach.
  BpeModel(const nlohmann::json& vocabulary, const nlohmann::json& merges, std::string where,
           bool whole = false);

  // Appends the ids of one piece of UTF-8 text.
  void encode(std::string_view piece, std::vector<std::int64_t>& ids) const;

  std::optional<std::int64_t> find(const std::string& text) const;  // `text` as the file spells it
  std::int64_t entries() const { return static_cast<std::int64_t>(ids_.size()); }
  const std::unordered_map<std::string, std::int32_t>& vocabulary() const { return ids_; }

 private:
  struct Merge {
    std::int32_t rank, id;
  };
  struct Symbol {
    std::int32_t id;
    std::int32_t previous, next;  // neighbours in the piece, -1 at its ends
    bool merged;                  // true: part of the symbol before it
  };

  void read_vocabulary(const nlohmann::json& vocabulary);
  void read_merges(const nlohmann::json& merges);
  const Merge* find_merge(const std::vector<Symbol>& symbols, std::int32_t left) const;
  void merge(std::vector<Symbol>& symbols) const;
  [[noreturn]] void fail(const std::string& message) const;

  std::string where_;
  bool whole_;
  std::unordered_map<std::string, std::int32_t> ids_;
  std::array<std::int32_t, 256> byte_ids_{};         // -1 for bytes that do not occur in UTF-8
  std::unordered_map<std::uint64_t, Merge> merges_;  // key: left id * 2^32 + right id
};

// The character for a byte in vocabulary entries: printable Latin-1 characters except the soft hyphen stand
// for themselves, other bytes are U+0100 and following.
char32_t byte_character(unsigned char byte);

// The bytes of an entry; its own UTF-8 when one of its characters stands for no byte.
std::string entry_bytes(std::string_view entry);

}  // namespace lamplighter

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "bundle/placement.h"

namespace lamplighter::cli {

// What a bundle can do and what that costs, worked out from its manifest alone.

// Every decoding method and the manifest entries it still lacks; empty: pictures can be drawn with it. Tables
// of neighbours are no part of this: one that is absent is computed.
std::vector<std::pair<std::string, std::vector<std::string>>> method_needs(const Manifest& manifest);
// Those that lack nothing.
std::vector<std::string> ready_methods(const Manifest& manifest);

// Caches that one picture of a guided pair holds while it is drawn, in bytes, or what a pass takes of
// continuous tokens, at least; without guidance it is half.
struct SlotMemory {
  std::int64_t rows = 0;     // longest prompt, codes and row ends; the rows of a draft tree come on top
  std::uint64_t target = 0;  // keys and values
  std::map<std::string, std::uint64_t> drafters;  // by name
};
SlotMemory slot_memory(const Manifest& manifest, const Grid& grid, const Placement& placement);

// What the words that a bundle knows may say, "subject" and "lighthouse, sailboat", by the first words for
// each.
std::vector<std::pair<std::string, std::string>> known_words(const VocabularyEntry& vocabulary);

// Bytes of the files of all modules and drafters, by module.
std::vector<std::pair<std::string, std::uint64_t>> weight_bytes(const Manifest& manifest);

}  // namespace lamplighter::cli

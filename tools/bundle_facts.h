#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "device/placement.h"

namespace lamplighter::cli {

// Facts about a bundle from its manifest alone: supported methods, memory, words.

// Every method with the manifest entries that it lacks; none: the method is ready. A missing neighbour table
// does not count, because it is computed.
std::vector<std::pair<std::string, std::vector<std::string>>> method_needs(const Manifest& manifest);
// Methods that lack nothing.
std::vector<std::string> ready_methods(const Manifest& manifest);

// Bytes of the caches of one guided image, or for continuous tokens the least that a pass takes. Without
// guidance it is half.
struct SlotMemory {
  std::int64_t cache_slots = 0;                   // longest prompt, codes and row ends, without a draft tree
  std::uint64_t target = 0;                       // keys and values
  std::map<std::string, std::uint64_t> drafters;  // by name
};
SlotMemory slot_memory(const Manifest& manifest, const Grid& grid, const Placement& placement);

// The vocabulary of a bundle by kind, each word by its first phrase: "subject" and "lighthouse, sailboat".
std::vector<std::pair<std::string, std::string>> known_words(const VocabularyEntry& vocabulary);

// Bytes of the file of every module and drafter.
std::vector<std::pair<std::string, std::uint64_t>> weight_bytes(const Manifest& manifest);

}  // namespace lamplighter::cli

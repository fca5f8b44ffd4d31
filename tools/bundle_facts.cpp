#include "tools/bundle_facts.h"

#include "bundle/draft_kinds.h"
#include "bundle/modules/continuous.h"
#include "draft/registry.h"

namespace lamplighter::cli {
namespace {

// Bytes of both sequences of a guided pair, with `bytes` per cache slot.
std::uint64_t pair_bytes(std::int64_t bytes, std::int64_t slots) {
  return 2 * static_cast<std::uint64_t>(bytes * slots);
}

}  // namespace

std::vector<std::pair<std::string, std::vector<std::string>>> method_needs(const Manifest& manifest) {
  std::vector<std::pair<std::string, std::vector<std::string>>> needs;
  for (const MethodEntry& method : methods()) needs.emplace_back(method.name, missing_for(method, manifest));
  return needs;
}

std::vector<std::string> ready_methods(const Manifest& manifest) {
  std::vector<std::string> ready;
  for (const auto& [method, needs] : method_needs(manifest)) {
    if (needs.empty()) ready.push_back(method);
  }
  return ready;
}

SlotMemory slot_memory(const Manifest& manifest, const Grid& grid, const Placement& placement) {
  SlotMemory memory;
  if (manifest.is_continuous()) {
    memory.cache_slots = grid.tokens();
    memory.target = 2 * static_cast<std::uint64_t>(context_bytes(manifest, grid));
    return memory;
  }
  memory.cache_slots = manifest.prompt->length + grid.length();
  memory.target = pair_bytes(row_bytes(manifest.cache, placement), memory.cache_slots);
  const auto number = static_cast<std::int64_t>(c10::elementSize(placement.dtype));
  for (const auto& [name, drafter] : manifest.drafters) {
    if (draft_kind(drafter).has(kDraftCache))
      memory.drafters[name] = pair_bytes(number * cache_numbers(drafter), memory.cache_slots);
  }
  return memory;
}

std::vector<std::pair<std::string, std::string>> known_words(const VocabularyEntry& vocabulary) {
  std::vector<std::pair<std::string, std::string>> words;
  for (const VocabularyEntry::Kind& kind : vocabulary.kinds) {
    std::string text;
    for (const VocabularyEntry::Value& value : kind.values) {
      if (!value.phrases.empty()) text += (text.empty() ? "" : ", ") + value.phrases.front();
    }
    words.emplace_back(kind.name, text);
  }
  return words;
}

std::vector<std::pair<std::string, std::uint64_t>> weight_bytes(const Manifest& manifest) {
  std::vector<std::pair<std::string, std::uint64_t>> bytes;
  for (const auto& [name, module] : manifest.modules)
    bytes.emplace_back(name, manifest.files.at(module.file).bytes);
  for (const auto& [name, drafter] : manifest.all_drafters())
    bytes.emplace_back(name, manifest.files.at(drafter.module.file).bytes);
  return bytes;
}

}  // namespace lamplighter::cli

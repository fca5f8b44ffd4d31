#include "bundle_facts.h"

#include "propose/registry.h"

namespace lamplighter::cli {
namespace {

// Of the sequences of a pair; `numbers` in every row of each.
std::uint64_t pair_bytes(std::int64_t numbers, std::int64_t rows, c10::ScalarType dtype) {
  return 2 * c10::elementSize(dtype) * static_cast<std::uint64_t>(numbers * rows);
}

}  // namespace

std::vector<std::pair<std::string, std::vector<std::string>>> method_needs(const Manifest& manifest) {
  std::vector<std::pair<std::string, std::vector<std::string>>> needs;
  for (const MethodEntry& method : methods()) needs.emplace_back(method.name, missing_for(method, manifest));
  return needs;
}

SlotMemory slot_memory(const Manifest& manifest, const Grid& grid, c10::ScalarType dtype) {
  SlotMemory memory;
  memory.rows = manifest.prompt->length + grid.length();
  const auto& cache = manifest.cache;
  memory.target = pair_bytes(2 * cache.layers * cache.kv_heads * cache.head_dim, memory.rows, dtype);
  for (const auto& [name, drafter] : manifest.drafters)
    memory.drafters[name] = pair_bytes(cache_numbers(drafter), memory.rows, dtype);
  return memory;
}

std::vector<std::pair<std::string, std::uint64_t>> weight_bytes(const Manifest& manifest) {
  std::vector<std::pair<std::string, std::uint64_t>> bytes;
  for (const auto& [name, module] : manifest.modules)
    bytes.emplace_back(name, manifest.files.at(module.file).bytes);
  for (const auto& [name, drafter] : manifest.drafters)
    bytes.emplace_back(name, manifest.files.at(drafter.module.file).bytes);
  return bytes;
}

}  // namespace lamplighter::cli

#include "bundle_facts.h"

#include "propose/registry.h"

namespace lamplighter::cli {
namespace {

std::uint64_t cache_bytes(std::int64_t layers, std::int64_t kv_heads, std::int64_t head_dim,
                          std::int64_t rows, c10::ScalarType dtype) {
  constexpr std::uint64_t kPlanes = 2, kPair = 2;  // keys and values of two sequences
  return kPlanes * kPair * c10::elementSize(dtype) *
         static_cast<std::uint64_t>(layers * kv_heads * head_dim * rows);
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
  memory.target = cache_bytes(cache.layers, cache.kv_heads, cache.head_dim, memory.rows, dtype);
  for (const auto& [name, drafter] : manifest.drafters) {
    memory.drafters[name] =
        cache_bytes(drafter.layers, drafter.kv_heads, drafter.head_dim, memory.rows, dtype);
  }
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

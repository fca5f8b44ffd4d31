#pragma once

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <string>
#include <vector>

#include "lamplighter/bundle.h"

namespace lamplighter {

// Device and precision of the modules.
struct Placement {
  c10::Device device{c10::kCPU};
  c10::ScalarType dtype = c10::kFloat;  // of activations, of caches and of weights that are not quantized
  int weight_bits = 16;                 // 8 or 4: weights of matrix products are quantized to integers
  bool rounded_cache = false;           // the target's cache holds 8-bit integers
};

// Resolves "auto" and checks that the device exists. Throws Error (usage, device).
Placement resolve_placement(const RuntimeOptions& options);

// Also checks what the bundle's modules support: quantized weights run in bf16 only. "auto" selects the
// precision in which a quantized target is stored.
Placement resolve_placement(const RuntimeOptions& options, const Manifest& manifest);

// Bits per weight of a matrix product as the module stores it: 8 or 4 when quantized, else 16.
int stored_bits(const ModuleEntry& entry);

// What RuntimeOptions takes.
std::vector<std::string> dtype_names();
std::vector<std::string> cache_dtype_names();

std::string dtype_name(const Placement& placement);        // fp32, bf16, fp16, int8, int4
std::string cache_dtype_name(const Placement& placement);  // fp32, bf16, fp16, int8

// Bytes of one cache slot: keys and values of all layers.
std::int64_t row_bytes(const CacheEntry& cache, const Placement& placement);

}  // namespace lamplighter

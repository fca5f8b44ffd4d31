#pragma once

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <string>

#include "lamplighter/bundle.h"

namespace lamplighter {

// Where and in which precision modules run.
struct Placement {
  c10::Device device{c10::kCPU};
  c10::ScalarType dtype = c10::kFloat;  // of activations, of caches and of weights that are not rounded
  int weight_bits = 16;                 // 8 or 4: the weights of products are rounded to integers
  bool rounded_cache = false;           // the target's cache holds rows of 8-bit integers
};

// Resolves "auto", checks that the device exists. Throws Error (usage, device).
Placement resolve_placement(const RuntimeOptions& options);

// Also what the bundle's modules can run in: rounded weights beside bf16 alone, and "auto" is the precision
// in which a target is stored that has them.
Placement resolve_placement(const RuntimeOptions& options, const Manifest& manifest);

// Bits of a weight of a product as a module stores it: 8 or 4 where it is rounded, else 16.
int stored_bits(const ModuleEntry& entry);

std::string dtype_name(const Placement& placement);        // fp32, bf16, fp16, int8, int4
std::string cache_dtype_name(const Placement& placement);  // fp32, bf16, fp16, int8

// Bytes of one row of the target's cache: keys and values of all layers.
std::int64_t row_bytes(const CacheEntry& cache, const Placement& placement);

}  // namespace lamplighter

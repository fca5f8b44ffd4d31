#include "kernels/common/isa.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <string>

namespace lamplighter {
namespace {

Isa cpu_isa() {
#if defined(__x86_64__)
  const bool avx2 =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bf16");
  return avx2 && avx512 ? Isa::kAvx512 : avx2 ? Isa::kAvx2 : Isa::kPortable;
#else
  return Isa::kPortable;
#endif
}

Isa allowed_isa() {
  const char* value = std::getenv("LAMPLIGHTER_ISA");
  const std::string name = value == nullptr ? "" : value;
  if (name == "portable") return Isa::kPortable;
  if (name == "avx2") return Isa::kAvx2;
  TORCH_CHECK(name.empty() || name == "avx512", "LAMPLIGHTER_ISA: got '", name,
              "', expected portable, avx2 or avx512");
  return Isa::kAvx512;
}

std::atomic<Isa>& current() {
  static std::atomic<Isa> isa{std::min(cpu_isa(), allowed_isa())};
  return isa;
}

}  // namespace

Isa active_isa() {
  return current().load(std::memory_order_relaxed);
}

Isa limit_isa(Isa limit) {
  const Isa isa = std::min(limit, cpu_isa());
  current().store(isa, std::memory_order_relaxed);
  return isa;
}

}  // namespace lamplighter

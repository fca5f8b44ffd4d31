#include "kernels/common/isa.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <string>
#include <string_view>
#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace lamplighter {
namespace {

constexpr std::array<std::string_view, 6> kNames{"portable", "neon", "avx2", "avxvnni", "avx512", "amx"};

#if defined(__x86_64__)
// Linux keeps the tiles' state for processes that have asked for it.
bool grants_tiles() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kBFloat16 = 1u << 22, kTiles = 1u << 24;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (d & kBFloat16) == 0 || (d & kTiles) == 0) return false;
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // of asm/prctl.h; not in older headers
  return ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}
#endif

bool reports_avx_vnni() {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kAvxVnni = 1u << 4;
  return __builtin_cpu_supports("avx2") && __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 &&
         (a & kAvxVnni) != 0;
#else
  return false;
#endif
}

Isa cpu_isa() {
#if defined(__x86_64__)
  const bool avx2 =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bf16");
  if (!avx2) return Isa::kPortable;
  const bool dots =
      has_avx_vnni() || (__builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni"));
  if (!avx512) return dots ? Isa::kAvxVnni : Isa::kAvx2;
  return grants_tiles() ? Isa::kAmx : Isa::kAvx512;
#elif defined(__aarch64__)
  return (::getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0 ? Isa::kNeon : Isa::kPortable;
#else
  return Isa::kPortable;
#endif
}

Isa allowed_isa() {
  const char* value = std::getenv("LAMPLIGHTER_ISA");
  const std::string name = value == nullptr ? "" : value;
  if (name.empty()) return kBestIsa;
  const auto* const found = std::find(kNames.begin(), kNames.end(), name);
  TORCH_CHECK(found != kNames.end(), "LAMPLIGHTER_ISA: got '", name,
              "', expected portable, neon, avx2, avxvnni, avx512 or amx");
  return static_cast<Isa>(found - kNames.begin());
}

// The best set of this CPU that is no better than `most`.
Isa at_most(Isa most) {
  const Isa best = cpu_isa();
  return most == Isa::kNeon && best != Isa::kNeon ? Isa::kPortable : std::min(most, best);
}

std::atomic<Isa>& current() {
  static std::atomic<Isa> isa{at_most(allowed_isa())};
  return isa;
}

}  // namespace

const char* isa_name(Isa isa) {
  return kNames[static_cast<std::size_t>(isa)].data();
}

Isa active_isa() {
  return current().load(std::memory_order_relaxed);
}

Isa float_isa() {
  const Isa isa = active_isa();
  return isa == Isa::kAvxVnni ? Isa::kAvx2 : isa;
}

bool has_avx_vnni() {
  static const bool has = reports_avx_vnni();  // hypervisors take microseconds for an answer
  return has;
}

Isa limit_isa(Isa limit) {
  const Isa isa = at_most(limit);
  current().store(isa, std::memory_order_relaxed);
  return isa;
}

}  // namespace lamplighter

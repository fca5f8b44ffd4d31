#pragma once

#include <type_traits>

#include "kernels/common/exported.h"

namespace lamplighter {

// Instruction sets of the CPU kernels, in rising order. kNeon is 64-bit Arm's, those after it x86-64's.
//   kNeon:    dot products of bytes (ASIMDDP, Armv8.2)
//   kAvx2:    AVX2, FMA, F16C
//   kAvxVnni: kAvx2 and vpdpbusd on 256 bits (AVX-VNNI, or AVX-512 VNNI and VL), for products of integers
//   kAvx512:  AVX-512 F, BW, VL, DQ, VNNI and BF16; CPUs that lack one of these run a lesser set
//   kAmx:     kAvx512 and tiles of bf16 (AMX), for products of bf16
// A family's CPU kernels are templates over kPortable, kNeon, kAvx2 and kAvx512, which its isa.cpp
// specialises for the processors of the build.
enum class Isa { kPortable, kNeon, kAvx2, kAvxVnni, kAvx512, kAmx };
constexpr Isa kBestIsa = Isa::kAmx;

// portable, neon, avx2, avxvnni, avx512 or amx
LAMPLIGHTER_EXPORTED const char* isa_name(Isa isa);

// The set that kernels use: the best one of this CPU, at most what the environment variable LAMPLIGHTER_ISA
// (a name of isa_name(); read once) or limit_isa() allows. Throws c10::Error for other values of the
// variable.
LAMPLIGHTER_EXPORTED Isa active_isa();

// The set whose floating-point arithmetic active_isa() has: kAvx2 for kAvxVnni, which adds integers alone.
LAMPLIGHTER_EXPORTED Isa float_isa();

// Whether this CPU has AVX-VNNI, with which vpdpbusd needs no AVX-512.
bool has_avx_vnni();

// Lowers active_isa() for the whole process to `limit` where the CPU has more; for tests and benchmarks.
// Returns what is active now, which is another one where the CPU does not have `limit`.
LAMPLIGHTER_EXPORTED Isa limit_isa(Isa limit);

// kernel(Set) for active_isa(), Set::value being the instruction set: the address of its kernel.
template <class Kernel>
auto for_isa(Kernel kernel) {
  switch (active_isa()) {
#if defined(__x86_64__)
    case Isa::kAmx:
    case Isa::kAvx512:
      return kernel(std::integral_constant<Isa, Isa::kAvx512>());
    case Isa::kAvxVnni:
    case Isa::kAvx2:
      return kernel(std::integral_constant<Isa, Isa::kAvx2>());
#elif defined(__aarch64__)
    case Isa::kNeon:
      return kernel(std::integral_constant<Isa, Isa::kNeon>());
#endif
    default:
      return kernel(std::integral_constant<Isa, Isa::kPortable>());
  }
}

}  // namespace lamplighter

#pragma once

#include <type_traits>

namespace lamplighter {

// Instruction sets of the CPU kernels, in rising order.
//   kAvx2:   AVX2, FMA, F16C
//   kAvx512: AVX-512 F, BW, VL, DQ, VNNI and BF16; CPUs with AVX-512 but without one of these run kAvx2
//   kAmx:    kAvx512 and tiles of bf16 (AMX); only products of bf16 have a kernel for it
// A family's CPU kernels are templates over the first three, which its isa.cpp specialises.
enum class Isa { kPortable, kAvx2, kAvx512, kAmx };
constexpr Isa kBestIsa = Isa::kAmx;

// portable, avx2, avx512 or amx
__attribute__((visibility("default"))) const char* isa_name(Isa isa);

// The set that kernels use: the best one of this CPU, at most what the environment variable LAMPLIGHTER_ISA
// (a name of isa_name(); read once) or limit_isa() allows. Throws c10::Error for other values of the
// variable.
__attribute__((visibility("default"))) Isa active_isa();

// Lowers active_isa() for the whole process to `limit` where the CPU has more; for tests and benchmarks.
// Returns what is active now, which is less than `limit` on a lesser CPU.
__attribute__((visibility("default"))) Isa limit_isa(Isa limit);

// kernel(Set) for active_isa(), Set::value being the instruction set: the address of its kernel.
template <class Kernel>
auto for_isa(Kernel kernel) {
  switch (active_isa()) {
    case Isa::kAmx:
    case Isa::kAvx512:
      return kernel(std::integral_constant<Isa, Isa::kAvx512>());
    case Isa::kAvx2:
      return kernel(std::integral_constant<Isa, Isa::kAvx2>());
    default:
      return kernel(std::integral_constant<Isa, Isa::kPortable>());
  }
}

}  // namespace lamplighter

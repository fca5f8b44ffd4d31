#pragma once

#include "kernels/common/isa.h"
#if LAMPLIGHTER_THIS_ISA == 4
#include "kernels/common/simd_avx512.h"
#elif LAMPLIGHTER_THIS_ISA == 2
#include "kernels/common/simd_avx2.h"
#elif LAMPLIGHTER_THIS_ISA == 1
#include "kernels/common/simd_neon.h"
#else
#include "kernels/common/simd_portable.h"
#endif

// For a family's isa.cpp alone, which is compiled once for every instruction set. But for the specialisations
// for kThisIsa it keeps everything in anonymous namespaces: the linker must not take its copy of a shared
// inline function for the copies of other files.
namespace lamplighter {
namespace {

constexpr Isa kThisIsa = static_cast<Isa>(LAMPLIGHTER_THIS_ISA);
#if LAMPLIGHTER_THIS_ISA == 4
using ThisSimd = Avx512;
#elif LAMPLIGHTER_THIS_ISA == 2
using ThisSimd = Avx2;
#elif LAMPLIGHTER_THIS_ISA == 1
using ThisSimd = Neon;
#else
using ThisSimd = Portable;
#endif

// A type of this file and instruction set, for CpuExecutor.
struct ThisTag {};

}  // namespace
}  // namespace lamplighter

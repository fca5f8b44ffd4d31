#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

namespace lamplighter {
namespace {

// The vector vocabulary of the elementwise and attention kernels for any processor: 4 lanes of the compilers'
// vector extension; meanings as in simd_avx512.h.
struct Portable {
  typedef float F __attribute__((vector_size(16)));
  typedef uint32_t W __attribute__((vector_size(16)));
  typedef int32_t Integers __attribute__((vector_size(16)));
  static constexpr int kLanes = 4;
  static constexpr int kQueries = 2;
  static constexpr bool kJoinsRows = false;

  static F zero() { return F{}; }
  static F set(float x) { return F{x, x, x, x}; }
  static F add(F a, F b) { return a + b; }
  static F sub(F a, F b) { return a - b; }
  static F mul(F a, F b) { return a * b; }
  static F div(F a, F b) { return a / b; }
  static F max(F a, F b) { return a > b ? a : b; }
  static F min(F a, F b) { return a < b ? a : b; }
  static F fma(F a, F b, F c) { return a * b + c; }
  static F round(F a) {  // |a| < 2^22; adding and subtracting 1.5 * 2^23 leaves the nearest integer
    const F shift = set(12582912.0F);
    return (a + shift) - shift;
  }
  static F times_power_of_2(F a, F n) {
    const W exponent = reinterpret_cast<W>(__builtin_convertvector(n, Integers) + 127) << 23;
    return a * reinterpret_cast<F>(exponent);
  }
  static F keep_above(F a, F x, F bound) { return x <= bound ? zero() : a; }
  static float sum(F a) { return (a[0] + a[2]) + (a[1] + a[3]); }
  static float largest(F a) {
    const float x = a[0] > a[1] ? a[0] : a[1];
    const float y = a[2] > a[3] ? a[2] : a[3];
    return x > y ? x : y;
  }

  static F load(const float* p) { return reinterpret_cast<F>(load_words(p)); }
  static F load(const float* p, int64_t n) { return reinterpret_cast<F>(load_words(p, n)); }
  static F load(const uint16_t* p) { return reinterpret_cast<F>(W{p[0], p[1], p[2], p[3]} << 16); }
  static F load(const uint16_t* p, int64_t n) {
    uint16_t buffer[kLanes] = {};
    std::memcpy(buffer, p, static_cast<size_t>(n) * sizeof(uint16_t));
    return load(buffer);
  }
  static void store(float* p, F a) { store_words(p, reinterpret_cast<W>(a)); }
  static void store(float* p, F a, int64_t n) { store_words(p, reinterpret_cast<W>(a), n); }
  static void store(uint16_t* p, F a) {
    const W words = rounded_high(a);
    for (int i = 0; i < kLanes; ++i) p[i] = static_cast<uint16_t>(words[i]);
  }
  static void store(uint16_t* p, F a, int64_t n) {
    uint16_t buffer[kLanes];
    store(buffer, a);
    std::memcpy(p, buffer, static_cast<size_t>(n) * sizeof(uint16_t));
  }
  static F rounded(F a, float) { return a; }
  static F rounded(F a, uint16_t) { return reinterpret_cast<F>(rounded_high(a) << 16); }

  static W load_words(const void* p) {
    W a;
    std::memcpy(&a, p, sizeof(W));
    return a;
  }
  static W load_words(const void* p, int64_t n) {
    W a{};
    std::memcpy(&a, p, static_cast<size_t>(n) * sizeof(uint32_t));
    return a;
  }
  static void store_words(void* p, W a) { std::memcpy(p, &a, sizeof(W)); }
  static void store_words(void* p, W a, int64_t n) {
    std::memcpy(p, &a, static_cast<size_t>(n) * sizeof(uint32_t));
  }
  static W set_word(uint32_t x) { return W{x, x, x, x}; }
  static F as_floats(W a) { return reinterpret_cast<F>(a); }
  static W as_words(F a) { return reinterpret_cast<W>(a); }
  static F even(W pairs) { return reinterpret_cast<F>(pairs << 16); }
  static F odd(W pairs) { return reinterpret_cast<F>(pairs & 0xffff0000U); }
  static W pairs(F even, F odd) { return rounded_high(even) | (rounded_high(odd) << 16); }

  static F dot(F sum, W a, W b, float) { return fma(as_floats(a), as_floats(b), sum); }
  static F dot(F sum, W a, W b, uint16_t) { return fma(even(a), even(b), fma(odd(a), odd(b), sum)); }

  static W add_bytes(W sum, W weights, W value) {
    for (int byte = 0; byte < 4; ++byte) {
      const W factor = reinterpret_cast<W>(reinterpret_cast<Integers>(value << (24 - 8 * byte)) >> 24);
      sum += (weights >> (8 * byte) & 255U) * factor;
    }
    return sum;
  }
  static W low_halves(W a) { return a & 0x0f0f0f0fU; }
  static W high_halves(W a) { return a >> 4 & 0x0f0f0f0fU; }
  static F to_floats(W a) { return __builtin_convertvector(reinterpret_cast<Integers>(a), F); }
  static void store_bytes(int8_t* p, F a) {
    for (int i = 0; i < kLanes; ++i) p[i] = static_cast<int8_t>(a[i]);
  }

  static F turn(F x, F cs) {
    return F{x[0] * cs[0] - x[1] * cs[1], x[1] * cs[0] + x[0] * cs[1], x[2] * cs[2] - x[3] * cs[3],
             x[3] * cs[2] + x[2] * cs[3]};
  }

  static F sums(const F* a) {
    F half[2];  // of rows i and i + 2
#pragma GCC unroll 16
    for (int i = 0; i < 2; ++i) half[i] = low_high(a[i], a[i + 2]) + high_low(a[i], a[i + 2]);
    const F x = half[0];
    const F y = half[1];
    return F{x[0] + x[1], y[0] + y[1], x[2] + x[3], y[2] + y[3]};
  }

 private:
  static F low_high(F a, F b) {
    return F{a[0], a[1], b[2], b[3]};
  }
  static F high_low(F a, F b) {
    return F{a[2], a[3], b[0], b[1]};
  }
  // The bf16 nearest to each lane (ties to even, NaN kept) in the low half of the lane.
  static W rounded_high(F a) {
    const W bits = reinterpret_cast<W>(a);
    const W nearest = (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
    const W quiet = (bits >> 16) | 0x40U;
    return a == a ? nearest : quiet;
  }
};

}  // namespace
}  // namespace lamplighter

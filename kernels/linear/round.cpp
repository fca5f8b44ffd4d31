#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "kernels/common/rounding.h"
#include "kernels/linear/linear.h"

namespace lamplighter {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

float as_float(float value) {
  return value;
}
float as_float(uint16_t value) {
  return bfloat16_value(value);
}

// The number that is furthest from zero, the first of several; NaN when one is not finite.
template <class Element>
float furthest(const Element* weight, int64_t count) {
  float most = 0;
  for (int64_t k = 0; k < count; ++k) {
    const float value = as_float(weight[k]);
    if (!(std::fabs(value) <= std::numeric_limits<float>::max())) return kNan;
    if (std::fabs(value) > std::fabs(most)) most = value;
  }
  return most;
}

template <class Element>
void round_to_bytes(const Element* weight, int64_t in, char* rounded) {
  const float most = std::fabs(furthest(weight, in));
  const bool finite = most == most;
  const float range = most > kLinearSmallestRange ? most : kLinearSmallestRange;
  const float scale = finite ? range / 127.0F : kNan;
  const float factor = 127.0F / range;
  for (int64_t k = 0; k < in; ++k) {
    rounded[k] = static_cast<char>(finite ? nearest_integer(as_float(weight[k]) * factor) : 0);
  }
  std::memcpy(rounded + in, &scale, sizeof(scale));
}

// -8 to 7
int half_byte(float quotient) {
  return nearest_integer(quotient < -8.0F ? -8.0F : quotient > 7.0F ? 7.0F : quotient);
}

// The scale for a group whose furthest weight becomes about -8. Of integers q the best scale is sum(w q) /
// sum(q q), which leaves sum(w w) - sum(w q)^2 / sum(q q): the divisors tried are compared by what they take
// away.
float best_scale(const float* weight, float most) {
  constexpr int kTried = 13;
  float best = 0, taken = -1;
  for (int trial = 0; trial < kTried; ++trial) {
    const float factor = -(6.8F + 0.2F * static_cast<float>(trial)) / most;
    float products = 0, squares = 0;
    for (int64_t k = 0; k < kLinearGroup; ++k) {
      const auto q = static_cast<float>(half_byte(weight[k] * factor));
      products += weight[k] * q;
      squares += q * q;
    }
    const float takes = squares > 0 ? products * (products / squares) : 0;
    if (takes > taken) {
      taken = takes;
      best = squares > 0 ? products / squares : 0;
    }
  }
  return best;
}

template <class Element>
void round_to_half_bytes(const Element* weight, int64_t in, char* rounded) {
  for (int64_t first = 0; first < in; first += kLinearGroup, rounded += 2 + kLinearGroup / 2) {
    const int64_t count = in - first < kLinearGroup ? in - first : kLinearGroup;
    float values[kLinearGroup] = {};
    for (int64_t k = 0; k < count; ++k) values[k] = as_float(weight[first + k]);
    const float most = furthest(values, kLinearGroup);
    const bool finite = most == most;
    const bool small = finite && std::fabs(most) <= kLinearSmallestRange;
    const uint16_t bits = !finite ? 0x7fc0 : small ? 0 : nearest_bfloat16(best_scale(values, most));
    const float scale = bfloat16_value(bits);
    const float factor = finite && scale != 0.0F ? 1.0F / scale : 0.0F;
    std::memcpy(rounded, &bits, sizeof(bits));
    auto* to = reinterpret_cast<unsigned char*>(rounded) + 2;
    std::memset(to, 0, kLinearGroup / 2);
    for (int64_t k = 0; k < kLinearGroup; ++k) {
      const int q = finite ? half_byte(values[k] * factor) + 8 : 8;
      to[k / 8 * 4 + k % 4] |= static_cast<unsigned char>(k / 4 % 2 == 0 ? q : q << 4);
    }
  }
}

template <class Element>
void round_features(const Element* weight, char* rounded, int64_t in, int bits, int64_t begin, int64_t end) {
  const auto round = bits == 8 ? &round_to_bytes<Element> : &round_to_half_bytes<Element>;
  const int64_t bytes = linear_rounded_bytes(bits, in);
  for (int64_t feature = begin; feature < end; ++feature) {
    round(weight + feature * in, in, rounded + feature * bytes);
  }
}

}  // namespace

void round_linear_features(const void* weight, void* rounded, int64_t in, ElementType type, int bits,
                           int64_t begin, int64_t end) {
  auto* to = static_cast<char*>(rounded);
  if (type == ElementType::kFloat32) {
    round_features(static_cast<const float*>(weight), to, in, bits, begin, end);
  } else {
    round_features(static_cast<const uint16_t*>(weight), to, in, bits, begin, end);
  }
}

}  // namespace lamplighter

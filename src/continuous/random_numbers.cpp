#include "continuous/random_numbers.h"

#include <cmath>
#include <numeric>
#include <utility>

#include "base/philox.h"
#include "kernels/ops.h"

namespace lamplighter {
namespace {

using ops::Purpose;

PhiloxBlock block(std::uint64_t seed, std::int64_t position, Purpose purpose, std::int64_t node,
                  std::int64_t lane = 0) {
  return philox4x32({{static_cast<std::uint32_t>(position), static_cast<std::uint32_t>(purpose),
                      static_cast<std::uint32_t>(node), static_cast<std::uint32_t>(lane)}},
                    static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32));
}

// A multiple of 2^-53 in [0, 1).
double uniform(const PhiloxBlock& random) {
  const std::uint64_t bits = (std::uint64_t{random.word[0]} << 32) | random.word[1];
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

// Two normal numbers of two words (Box and Muller 1958).
void normals_of(std::uint32_t radius, std::uint32_t angle, float* out) {
  constexpr double kTurn = 6.283185307179586476925;
  const double r = std::sqrt(-2.0 * std::log((static_cast<double>(radius) + 1.0) * 0x1p-32));
  const double a = kTurn * static_cast<double>(angle) * 0x1p-32;
  out[0] = static_cast<float>(r * std::cos(a));
  out[1] = static_cast<float>(r * std::sin(a));
}

// Normals of the blocks that of(0), of(1), .. give, four each.
template <class Of>
void fill_normals(std::int64_t count, float* out, Of of) {
  for (std::int64_t begin = 0; begin < count; begin += 4) {
    const PhiloxBlock random = of(begin / 4);
    float four[4];
    normals_of(random.word[0], random.word[1], four);
    normals_of(random.word[2], random.word[3], four + 2);
    for (std::int64_t i = begin; i < begin + 4 && i < count; ++i) out[i] = four[i - begin];
  }
}

}  // namespace

std::vector<std::int64_t> RandomNumbers::order(std::int64_t positions) const {
  std::vector<std::int64_t> order(static_cast<std::size_t>(positions));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  for (std::size_t left = order.size(); left > 1; --left) {  // Fisher and Yates
    const double random = uniform(block(seed_, static_cast<std::int64_t>(left), Purpose::order, 0));
    std::swap(order[left - 1], order[static_cast<std::size_t>(random * static_cast<double>(left))]);
  }
  return order;
}

void RandomNumbers::start(std::int64_t position, float* out) const {
  fill_normals(channels_, out,
               [&](std::int64_t node) { return block(seed_, position, Purpose::start, node); });
}

void RandomNumbers::noise(std::int64_t position, float* out) const {
  fill_normals(steps_ * channels_, out,
               [&](std::int64_t node) { return block(seed_, position, Purpose::noise, node); });
}

double RandomNumbers::verification(std::int64_t position) const {
  return uniform(block(seed_, position, Purpose::accept, 0));
}

void RandomNumbers::proposals(std::int64_t position, std::int64_t first, std::int64_t count, float* normals,
                              double* uniforms) const {
  for (std::int64_t i = 0; i < count; ++i) {
    fill_normals(channels_, normals + i * channels_, [&](std::int64_t lane) {
      return block(seed_, position, Purpose::proposal, first + i, lane);
    });
    uniforms[i] = uniform(block(seed_, position, Purpose::residual, first + i));
  }
}

}  // namespace lamplighter

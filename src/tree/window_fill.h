#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

namespace lamplighter {

// Drafts at new positions of a window (speculative Jacobi decoding). uniform: a code sampled uniformly and
// verified against that distribution. The others are point guesses: random: any code; repeat: the code to the
// left; sample: the target's most probable code there; above: the code one row up.
enum class WindowFill : std::uint8_t { uniform, random, repeat, sample, above };

constexpr std::array<const char*, 5> kWindowFills{"uniform", "random", "repeat", "sample", "above"};

// `name` must be one of kWindowFills.
inline WindowFill window_fill_from(const std::string& name) {
  return static_cast<WindowFill>(std::find(kWindowFills.begin(), kWindowFills.end(), name) -
                                 kWindowFills.begin());
}

}  // namespace lamplighter

// What new places of a window of drafts hold (speculative Jacobi decoding).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

namespace lamplighter {

// uniform: a code drawn evenly, judged by that law. The others are certain guesses: any code, the code to the
// left or the most probable one there, the code one row up.
enum class WindowFill : std::uint8_t { uniform, random, repeat, sample, above };

constexpr std::array<const char*, 5> kWindowFills{"uniform", "random", "repeat", "sample", "above"};

// name: one of the above.
inline WindowFill window_fill_from(const std::string& name) {
  return static_cast<WindowFill>(std::find(kWindowFills.begin(), kWindowFills.end(), name) -
                                 kWindowFills.begin());
}

}  // namespace lamplighter

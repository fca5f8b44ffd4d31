#pragma once

namespace lamplighter {

// Captions of measurements that name none.
inline constexpr const char* kCaptions[] = {
    "a white lighthouse on the coast at dusk", "a red boat on the sea at noon",
    "a blue house in the snow at night", "a yellow windmill on a meadow in the morning"};

}  // namespace lamplighter

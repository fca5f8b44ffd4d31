#pragma once

#include <cstddef>

namespace lamplighter {

// Characters that this thread has looked at while it cleaned captions: tests hold them against the length of
// the captions, which shows on any machine that work grows in proportion.
inline thread_local std::size_t cleaning_steps = 0;

}  // namespace lamplighter

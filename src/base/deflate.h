#pragma once

#include <string>
#include <string_view>

namespace lamplighter {

// Packs bytes as a zlib stream; equal input gives equal bytes. Throws std::bad_alloc where zlib has no
// memory.
std::string deflate_text(std::string_view text);

}  // namespace lamplighter

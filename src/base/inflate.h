#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace lamplighter {

enum class Packing { zlib, zlib_or_gzip };

// Unpacks `packed`, but stops soon after `most` bytes: a longer result is the beginning of the text. Nothing
// where the data are damaged. Throws std::bad_alloc where zlib has no memory.
std::optional<std::string> inflate_text(std::string_view packed, std::size_t most, Packing packing);

}  // namespace lamplighter

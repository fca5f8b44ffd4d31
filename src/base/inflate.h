#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lamplighter {

enum class Packing {
  zlib,          // what comes after the stream is not read
  zlib_or_gzip,  // one stream or several, as gzip's files are
};

// Unpacks `packed`, but stops soon after `most` bytes: a longer result is the beginning of the text. Nothing
// where the data are damaged. Throws std::bad_alloc where zlib has no memory.
std::optional<std::string> inflate_text(std::string_view packed, std::size_t most, Packing packing);

// The bytes that a zlib stream in several pieces unpacks to, counted until they are more than `most`; the
// stream may end early. Nothing where the data are damaged. Throws std::bad_alloc where zlib has no memory.
std::optional<std::uint64_t> inflated_size(const std::vector<std::string_view>& pieces, std::uint64_t most);

}  // namespace lamplighter

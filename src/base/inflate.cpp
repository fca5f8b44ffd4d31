#include "base/inflate.h"

#include <zlib.h>

#include <array>
#include <new>

namespace lamplighter {

std::optional<std::string> inflate_text(std::string_view packed, std::size_t most, Packing packing) {
  constexpr int kEither = 32;  // zlib finds out which of the two formats it is
  z_stream stream{};
  if (inflateInit2(&stream, MAX_WBITS + (packing == Packing::zlib ? 0 : kEither)) != Z_OK)
    throw std::bad_alloc();
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));  // zlib reads only
  stream.avail_in = static_cast<uInt>(packed.size());
  std::string text;
  std::array<char, 16384> piece{};
  int state = Z_OK;
  while (state == Z_OK && text.size() <= most) {
    stream.next_out = reinterpret_cast<Bytef*>(piece.data());
    stream.avail_out = static_cast<uInt>(piece.size());
    state = inflate(&stream, Z_NO_FLUSH);
    text.append(piece.data(), piece.size() - stream.avail_out);
    const bool has_next = state == Z_STREAM_END && stream.avail_in > 0;
    if (has_next && packing == Packing::zlib_or_gzip) state = inflateReset(&stream);
  }
  inflateEnd(&stream);
  if (state != Z_STREAM_END && text.size() <= most) return std::nullopt;
  return text;
}

std::optional<std::uint64_t> inflated_size(const std::vector<std::string_view>& pieces, std::uint64_t most) {
  z_stream stream{};
  if (inflateInit(&stream) != Z_OK) throw std::bad_alloc();
  std::array<char, 16384> room{};
  std::uint64_t size = 0;
  int state = Z_OK;
  for (const std::string_view piece : pieces) {
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(piece.data()));  // zlib reads only
    stream.avail_in = static_cast<uInt>(piece.size());
    bool is_full = true;  // more may come of what is read
    while (state == Z_OK && (stream.avail_in > 0 || is_full) && size <= most) {
      stream.next_out = reinterpret_cast<Bytef*>(room.data());
      stream.avail_out = static_cast<uInt>(room.size());
      state = inflate(&stream, Z_NO_FLUSH);
      if (state == Z_BUF_ERROR) state = Z_OK;  // it needs the next piece
      is_full = stream.avail_out == 0;
      size += room.size() - stream.avail_out;
    }
  }
  inflateEnd(&stream);
  if (state != Z_OK && state != Z_STREAM_END) return std::nullopt;
  return size;
}

}  // namespace lamplighter

#include <zlib.h>

#include <optional>

#include "base/files.h"
#include "base/inflate.h"
#include "base/utf8.h"
#include "image/byte_order.h"
#include "image/png_chunks.h"
#include "lamplighter/error.h"
#include "lamplighter/image.h"

namespace lamplighter {
namespace {

// Takes the text before the next zero byte and drops that byte. Returns nothing when there is none.
std::optional<std::string_view> take_field(std::string_view& data) {
  const std::size_t end = data.find('\0');
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view field = data.substr(0, end);
  data.remove_prefix(end + 1);
  return field;
}

std::string latin1_to_utf8(std::string_view text) {
  std::string result;
  for (const char byte : text) append_utf8(result, static_cast<unsigned char>(byte));
  return result;
}

std::optional<std::string> read_itxt(std::string_view data, std::size_t most) {
  if (data.size() < 2) return std::nullopt;
  const bool compressed = data[0] != 0;
  const bool known_method = data[1] == 0;
  data.remove_prefix(2);
  if (!take_field(data) || !take_field(data)) return std::nullopt;  // language, translated keyword
  if (!compressed) return std::string(data);
  return known_method ? inflate_text(data, most, Packing::zlib) : std::nullopt;
}

std::optional<std::string> read_ztxt(std::string_view data, std::size_t most) {
  if (data.empty() || data[0] != 0) return std::nullopt;
  const std::optional<std::string> text = inflate_text(data.substr(1), most, Packing::zlib);
  return text ? std::optional(latin1_to_utf8(*text)) : std::nullopt;
}

// Adds the text of a chunk. Unpacking stops soon after `most` bytes. Returns false for a malformed chunk.
bool add_text(std::string_view type, std::string_view data, std::size_t most, ImageText& texts) {
  const auto keyword = take_field(data);
  if (!keyword) return false;
  std::optional<std::string> text;
  if (type == "tEXt") text = latin1_to_utf8(data);
  if (type == "zTXt") text = read_ztxt(data, most);
  if (type == "iTXt") text = read_itxt(data, most);
  if (!text || find_invalid_utf8(*text) != std::string::npos) return false;
  texts.emplace_back(latin1_to_utf8(*keyword), std::move(*text));
  return true;
}

}  // namespace

ImageText parse_png_text(std::string_view bytes, const std::string& path, std::size_t most) {
  const auto damaged = [&](const std::string& what) {
    return Error(ExitCode::input, path + ": damaged PNG file: " + what);
  };
  std::string_view rest = bytes;
  rest.remove_prefix(kPngSignature.size());
  ImageText texts;
  std::size_t left = most;
  for (;;) {
    if (rest.size() < 12) throw damaged("it ends before its last chunk");
    const std::size_t length = read_32(rest);
    const std::string_view type = rest.substr(4, 4);
    if (length > rest.size() - 12) throw damaged("a chunk reaches beyond its end");
    if (type == "IEND") return texts;
    if (type == "tEXt" || type == "zTXt" || type == "iTXt") {
      const std::string_view body = rest.substr(4, 4 + length);
      const uLong crc = crc32_z(0, reinterpret_cast<const Bytef*>(body.data()), body.size());
      if (crc != read_32(rest.substr(8 + length))) throw damaged("checksum of a text chunk");
      if (texts.size() == limits::kPngTexts)
        throw damaged("more than " + std::to_string(limits::kPngTexts) + " text chunks");
      if (!add_text(type, body.substr(4), left, texts)) throw damaged("malformed text chunk");
      const std::size_t size = texts.back().first.size() + texts.back().second.size();
      if (size > left) {
        throw damaged("malformed text chunks: more than " + std::to_string(most) + " bytes in all");
      }
      left -= size;
    }
    rest.remove_prefix(12 + length);
  }
}

}  // namespace lamplighter

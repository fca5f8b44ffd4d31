#include "image/exif.h"

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/utf8.h"
#include "image/byte_order.h"

namespace lamplighter {
namespace {

constexpr std::uint16_t kExifPointer = 0x8769, kMakerNote = 0x927C, kUserComment = 0x9286,
                        kOrientation = 0x0112;
constexpr std::uint16_t kShort = 3, kLong = 4, kUndefined = 7;  // value types
constexpr std::size_t kHeader = 8, kEntry = 12;                 // bytes
constexpr std::string_view kBigEndian{"MM\0*", 4}, kLittleEndian{"II*\0", 4};
constexpr std::string_view kVendor{"lamplighter\0", 12};

std::string encode_utf16(const std::string& text) {
  std::string bytes;
  for (const char32_t code : decode_utf8(text)) {
    if (code >= 0x10000) {
      const auto rest = static_cast<std::uint32_t>(code) - 0x10000;
      bytes += encode_16(static_cast<std::uint16_t>(0xD800 + (rest >> 10U)));
      bytes += encode_16(static_cast<std::uint16_t>(0xDC00 + (rest & 0x3FFU)));
    } else {
      bytes += encode_16(static_cast<std::uint16_t>(code));
    }
  }
  return bytes;
}

std::string entry(std::uint16_t tag, std::uint16_t type, std::size_t count, std::size_t value) {
  return encode_16(tag) + encode_16(type) + encode_32(static_cast<std::uint32_t>(count)) +
         encode_32(static_cast<std::uint32_t>(value));
}

// A directory of one or more entries. No directory follows it.
std::string directory(std::size_t count, const std::string& entries) {
  return encode_16(static_cast<std::uint16_t>(count)) + entries + encode_32(0);
}
constexpr std::size_t size_of_directory(std::size_t entries) {
  return 2 + entries * kEntry + 4;
}

std::size_t read_number(std::string_view bytes, bool is_little) {
  if (is_little) return read_little(bytes);
  return bytes.size() == 2 ? read_16(bytes) : read_32(bytes);
}

// The entry of a tag in the directory at `at`. Returns nothing when the tag is missing.
std::optional<std::string_view> find_entry(std::string_view block, std::size_t at, std::uint16_t tag,
                                           bool is_little = false) {
  if (at > block.size() || block.size() - at < 2) return std::nullopt;
  const std::size_t count = read_number(block.substr(at, 2), is_little);
  if ((block.size() - at - 2) / kEntry < count) return std::nullopt;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string_view found = block.substr(at + 2 + i * kEntry, kEntry);
    if (read_number(found.substr(0, 2), is_little) == tag) return found;
  }
  return std::nullopt;
}

}  // namespace

std::string encode_exif(const ImageText& text) {
  std::string comment, note;
  for (const auto& [keyword, value] : text) {
    if (keyword == "parameters") comment = std::string("UNICODE\0", 8) + encode_utf16(value);
    if (keyword == "lamplighter") note = std::string(kVendor) + value;
  }
  const std::size_t exif = kHeader + size_of_directory(1), values = exif + size_of_directory(2);
  return std::string(kBigEndian) + encode_32(kHeader) + directory(1, entry(kExifPointer, kLong, 1, exif)) +
         directory(2, entry(kMakerNote, kUndefined, note.size(), values) +
                          entry(kUserComment, kUndefined, comment.size(), values + note.size())) +
         note + comment;
}

std::string read_exif(std::string_view block) {
  if (block.size() < kHeader || block.substr(0, 4) != kBigEndian) return "";
  const auto pointer = find_entry(block, read_32(block.substr(4)), kExifPointer);
  if (!pointer) return "";
  const auto note = find_entry(block, read_32(pointer->substr(8)), kMakerNote);
  if (!note) return "";
  const std::size_t size = read_32(note->substr(4)), offset = read_32(note->substr(8));
  if (offset > block.size() || size > block.size() - offset) return "";
  const std::string_view value = block.substr(offset, size);
  return value.substr(0, kVendor.size()) == kVendor ? std::string(value.substr(kVendor.size())) : "";
}

int read_orientation(std::string_view block) {
  const bool is_little = block.substr(0, 4) == kLittleEndian;
  if (block.size() < kHeader || (!is_little && block.substr(0, 4) != kBigEndian)) return 1;
  const auto entry = find_entry(block, read_number(block.substr(4, 4), is_little), kOrientation, is_little);
  if (!entry || read_number(entry->substr(2, 2), is_little) != kShort) return 1;
  const std::size_t value = read_number(entry->substr(8, 2), is_little);
  return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
}

}  // namespace lamplighter

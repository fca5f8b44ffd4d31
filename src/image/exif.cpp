#include "image/exif.h"

#include <cstddef>
#include <cstdint>

#include "base/utf8.h"
#include "image/big_endian.h"

namespace lamplighter {
namespace {

constexpr std::uint16_t kExifPointer = 0x8769, kMakerNote = 0x927C, kUserComment = 0x9286;
constexpr std::uint16_t kLong = 4, kUndefined = 7;  // value types
constexpr std::size_t kHeader = 8, kEntry = 12;     // bytes
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

// Position and length of a tag's value in the directory at `at`. Returns false when the tag is missing.
struct Value {
  std::size_t offset = 0, size = 0;
};
bool find_value(std::string_view block, std::size_t at, std::uint16_t tag, Value& value) {
  if (at > block.size() || block.size() - at < 2) return false;
  const std::size_t count = read_16(block.substr(at));
  if ((block.size() - at - 2) / kEntry < count) return false;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string_view found = block.substr(at + 2 + i * kEntry, kEntry);
    if (read_16(found) != tag) continue;
    value = {read_32(found.substr(8)), read_32(found.substr(4))};
    return true;
  }
  return false;
}

}  // namespace

std::string encode_exif(const ImageText& text) {
  std::string comment, note;
  for (const auto& [keyword, value] : text) {
    if (keyword == "parameters") comment = std::string("UNICODE\0", 8) + encode_utf16(value);
    if (keyword == "lamplighter") note = std::string(kVendor) + value;
  }
  const std::size_t exif = kHeader + size_of_directory(1), values = exif + size_of_directory(2);
  return std::string("MM\0*", 4) + encode_32(kHeader) + directory(1, entry(kExifPointer, kLong, 1, exif)) +
         directory(2, entry(kMakerNote, kUndefined, note.size(), values) +
                          entry(kUserComment, kUndefined, comment.size(), values + note.size())) +
         note + comment;
}

std::string read_exif(std::string_view block) {
  Value pointer, note;
  if (block.size() < kHeader || block.substr(0, 4) != std::string_view("MM\0*", 4)) return "";
  if (!find_value(block, read_32(block.substr(4)), kExifPointer, pointer)) return "";
  if (!find_value(block, pointer.offset, kMakerNote, note)) return "";
  if (note.offset > block.size() || note.size > block.size() - note.offset) return "";
  const std::string_view value = block.substr(note.offset, note.size);
  return value.substr(0, kVendor.size()) == kVendor ? std::string(value.substr(kVendor.size())) : "";
}

}  // namespace lamplighter

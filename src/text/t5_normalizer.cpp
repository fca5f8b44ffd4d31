#include "text/t5_normalizer.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <utility>

#include "base/utf8.h"
#include "text/unicode.h"

namespace lamplighter {
namespace {

constexpr std::size_t kWholeGrapheme = 6;   // bytes; shorter graphemes are looked up as a whole
constexpr std::size_t kLongestEntry = 256;  // bytes; the longest one of NFKC takes 33
// Fields of SentencePiece's messages.
constexpr std::uint64_t kNormalizer = 3, kName = 1, kTable = 2;

[[noreturn]] void malformed(const char* what) {
  throw std::invalid_argument(std::string("malformed ") + what);
}

// Reads the fields of a message of Protocol Buffers.
class Fields {
 public:
  explicit Fields(std::string_view message) : message_(message) {}

  struct Field {
    std::uint64_t number = 0;
    std::string_view whole;    // with its key
    std::string_view content;  // of a field of bytes
  };
  std::optional<Field> next() {
    if (at_ == message_.size()) return std::nullopt;
    const std::size_t begin = at_;
    const std::uint64_t key = read_number();
    Field field;
    field.number = key >> 3U;
    switch (key & 7U) {
      case 0:
        read_number();
        break;
      case 1:
        skip(8);
        break;
      case 2:
        field.content = skip(read_number());
        break;
      case 5:
        skip(4);
        break;
      default:
        malformed("field");
    }
    field.whole = message_.substr(begin, at_ - begin);
    return field;
  }

 private:
  std::uint64_t read_number() {
    std::uint64_t number = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (at_ == message_.size()) malformed("number");
      const auto byte = static_cast<unsigned char>(message_[at_++]);
      number |= std::uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) return number;
    }
    malformed("number");
  }
  std::string_view skip(std::uint64_t bytes) {
    if (bytes > message_.size() - at_) malformed("length");
    const std::string_view skipped = message_.substr(at_, static_cast<std::size_t>(bytes));
    at_ += skipped.size();
    return skipped;
  }

  std::string_view message_;
  std::size_t at_ = 0;
};

void append_number(std::string& message, std::uint64_t number) {
  for (; number >= 0x80; number >>= 7U) message += static_cast<char>((number & 0x7FU) | 0x80U);
  message += static_cast<char>(number);
}

void append_bytes(std::string& message, std::uint64_t field, std::string_view bytes) {
  append_number(message, field << 3U | 2U);
  append_number(message, bytes.size());
  message += bytes;
}

// The settings of a normalizer without its table, which is moved to `table`.
std::string without_table(std::string_view settings, std::string& table) {
  std::string others;
  Fields fields(settings);
  while (const auto field = fields.next()) {
    if (field->number == kTable) {
      table = field->content;
    } else if (field->number != kName) {
      others += field->whole;
    }
  }
  append_bytes(others, kName, "identity");
  return others;
}

std::uint32_t read_unit(std::string_view bytes, std::size_t at) {
  std::uint32_t unit = 0;
  for (unsigned i = 0; i < 4; ++i) unit |= std::uint32_t{static_cast<unsigned char>(bytes[at + i])} << 8U * i;
  return unit;
}

// Units of the trie.
std::uint32_t offset_of(std::uint32_t unit) {
  return (unit >> 10U) << ((unit & (1U << 9U)) >> 6U);
}
bool has_label(std::uint32_t unit, unsigned char label) {
  return (unit & (1U << 31U | 0xFFU)) == label;
}
bool has_entry(std::uint32_t unit) {
  return (unit >> 8U & 1U) != 0;
}

// Rust's white space, at which the tokenizer splits.
bool is_white_space(char32_t code) {
  return is_space(code) && (code < 0x1C || code > 0x1F);
}

// Characters that belong to the grapheme of the character behind them (Prepend of Unicode annex 29).
bool is_prepended(char32_t code) {
  return (code >= 0x600 && code <= 0x605) || code == 0x6DD || code == 0x70F || code == 0x890 ||
         code == 0x891 || code == 0x8E2 || code == 0xD4E || code == 0x110BD || code == 0x110CD ||
         code == 0x111C2 || code == 0x111C3 || code == 0x1193F || code == 0x11941 || code == 0x11A3A ||
         (code >= 0x11A84 && code <= 0x11A89) || code == 0x11D46;
}

// The end of the grapheme that begins at `at`.
std::size_t end_of_grapheme(std::u32string_view text, std::size_t at) {
  std::size_t end = at;
  while (end < text.size() && is_prepended(text[end])) ++end;
  const bool is_prefixed = end > at;
  if (!is_prefixed && text[at] == '\r' && at + 1 < text.size() && text[at + 1] == '\n') return at + 2;
  if (end < text.size() && ends_grapheme(text[end])) return is_prefixed ? end : end + 1;
  if (end < text.size()) ++end;
  while (end < text.size() && extends_grapheme(text[end])) ++end;
  return end;
}

}  // namespace

T5Normalizer::T5Normalizer(std::string& model) {
  std::string others, table;
  Fields fields(model);
  while (const auto field = fields.next()) {
    if (field->number == kNormalizer) {
      append_bytes(others, kNormalizer, without_table(field->content, table));
    } else {
      others += field->whole;
    }
  }
  model = std::move(others);
  if (table.empty()) return;
  const std::size_t size = table.size() < 4 ? 0 : read_unit(table, 0);
  if (size == 0 || size % 4 != 0 || size > table.size() - 4) malformed("table of a normalizer");
  for (std::size_t at = 4; at < size + 4; at += 4) units_.push_back(read_unit(table, at));
  entries_ = table.substr(size + 4);
}

bool T5Normalizer::append_entry(std::string_view part, std::string& result) const {
  std::size_t at = offset_of(units_[0]);
  for (const char byte : part) {
    const auto label = static_cast<unsigned char>(byte);
    at ^= label;
    if (label == 0 || at >= units_.size() || !has_label(units_[at], label)) return false;
    const std::uint32_t unit = units_[at];
    at ^= offset_of(unit);
    if (at >= units_.size()) return false;
    if (!has_entry(unit)) continue;
    const std::size_t begin = units_[at] & ~(1U << 31U);
    if (begin > entries_.size()) return false;
    const std::string_view entry = std::string_view(entries_).substr(begin, kLongestEntry);
    const std::size_t end = entry.find('\0');
    if (end == std::string_view::npos) return false;
    result += entry.substr(0, end);
    return true;
  }
  return false;
}

std::string T5Normalizer::normalize_grapheme(std::u32string_view grapheme) const {
  std::string whole = encode_utf8(grapheme);
  if (units_.empty()) return whole;
  std::string result;
  if (whole.size() < kWholeGrapheme && append_entry(whole, result)) return result;
  for (std::size_t i = 0; i < grapheme.size(); ++i) {
    const std::string part = encode_utf8(grapheme.substr(i, 1));
    if (!append_entry(part, result)) result += part;
  }
  return result;
}

std::string T5Normalizer::normalize(std::string_view text, std::vector<std::size_t>* origins) const {
  const std::u32string codes = decode_utf8(text);
  std::string result;
  std::size_t origin = 0;
  for (std::size_t begin = 0, end = 0; begin < codes.size(); begin = end) {
    end = end_of_grapheme(codes, begin);
    const std::u32string_view grapheme = std::u32string_view(codes).substr(begin, end - begin);
    std::u32string spaced = decode_utf8(normalize_grapheme(grapheme));
    std::replace_if(spaced.begin(), spaced.end(), is_white_space, U' ');
    result += encode_utf8(spaced);
    if (origins != nullptr) origins->resize(result.size(), origin);
    origin += encode_utf8(grapheme).size();
  }
  return result;
}

}  // namespace lamplighter

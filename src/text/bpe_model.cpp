#include "text/bpe_model.h"

#include <functional>
#include <queue>
#include <tuple>
#include <utility>

#include "base/utf8.h"
#include "lamplighter/error.h"

namespace lamplighter {
namespace {

constexpr std::int64_t kMostIds = 1 << 24;  // far above any vocabulary; limits tables of damaged files

std::string quote(const std::string& text) {
  return '"' + shorten(text, 60) + '"';
}

std::uint64_t pair_key(std::int32_t left, std::int32_t right) {
  return std::uint64_t{static_cast<std::uint32_t>(left)} << 32U | static_cast<std::uint32_t>(right);
}

bool is_in_utf8(int byte) {
  return byte != 0xC0 && byte != 0xC1 && byte < 0xF5;
}

std::array<char32_t, 256> make_byte_characters() {
  std::array<char32_t, 256> characters{};
  char32_t unprintable = 0x100;
  for (std::size_t byte = 0; byte < 256; ++byte) {
    const bool printable =
        (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || (byte >= 0xAE && byte <= 0xFF);
    characters[byte] = printable ? static_cast<char32_t>(byte) : unprintable++;
  }
  return characters;
}

// Splits a merge: "left right" or ["left", "right"]. Empty texts for anything else.
std::pair<std::string, std::string> merge_parts(const nlohmann::json& entry) {
  if (entry.is_array() && entry.size() == 2 && entry[0].is_string() && entry[1].is_string()) {
    return {entry[0].get<std::string>(), entry[1].get<std::string>()};
  }
  if (!entry.is_string()) return {};
  const auto& text = entry.get_ref<const std::string&>();
  const std::size_t space = text.find(' ');
  if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos) return {};
  return {text.substr(0, space), text.substr(space + 1)};
}

}  // namespace

char32_t byte_character(unsigned char byte) {
  static const std::array<char32_t, 256> characters = make_byte_characters();
  return characters[byte];
}

std::string entry_bytes(std::string_view entry) {
  static const std::unordered_map<char32_t, char> bytes = [] {
    std::unordered_map<char32_t, char> table;
    for (int byte = 0; byte < 256; ++byte) {
      table.emplace(byte_character(static_cast<unsigned char>(byte)), static_cast<char>(byte));
    }
    return table;
  }();
  std::string result;
  for (const char32_t code : decode_utf8(entry)) {
    const auto found = bytes.find(code);
    if (found == bytes.end()) return std::string(entry);
    result += found->second;
  }
  return result;
}

BpeModel::BpeModel(const nlohmann::json& vocabulary, const nlohmann::json& merges, std::string where,
                   bool whole)
    : where_(std::move(where)), whole_(whole) {
  read_vocabulary(vocabulary);
  read_merges(merges);
}

void BpeModel::fail(const std::string& message) const {
  throw Error(ExitCode::bundle, where_ + ": " + message);
}

void BpeModel::read_vocabulary(const nlohmann::json& vocabulary) {
  if (!vocabulary.is_object()) fail("model.vocab: expected an object of texts and ids");
  ids_.reserve(vocabulary.size());
  std::vector<bool> taken;
  for (const auto& [text, value] : vocabulary.items()) {
    const std::int64_t id = value.is_number_integer() ? value.get<std::int64_t>() : -1;
    if (id < 0 || id >= kMostIds) {
      fail("model.vocab: id of " + quote(text) + ": got " + shorten(value.dump(), 60) +
           ", expected an integer of 0 to " + std::to_string(kMostIds - 1));
    }
    const auto position = static_cast<std::size_t>(id);
    if (position >= taken.size()) taken.resize(position + 1);
    if (taken[position]) {
      fail("model.vocab: " + quote(text) + ": id " + std::to_string(id) + " belongs to another text");
    }
    taken[position] = true;
    ids_.emplace(text, static_cast<std::int32_t>(id));
  }
  for (int byte = 0; byte < 256; ++byte) {
    std::string character;
    append_utf8(character, byte_character(static_cast<unsigned char>(byte)));
    const auto found = ids_.find(character);
    if (found == ids_.end() && is_in_utf8(byte)) {
      fail("model.vocab: no entry " + quote(character) + " for byte " + std::to_string(byte) +
           ", expected all of UTF-8");
    }
    byte_ids_[static_cast<std::size_t>(byte)] = found == ids_.end() ? -1 : found->second;
  }
}

void BpeModel::read_merges(const nlohmann::json& merges) {
  if (!merges.is_array()) fail("model.merges: expected an array");
  merges_.reserve(merges.size());
  std::int32_t rank = 0;
  for (std::size_t at = 0; at < merges.size(); ++at) {
    const nlohmann::json& entry = merges[at];
    if (entry.is_string() && entry.get_ref<const std::string&>().rfind("#version", 0) == 0) continue;
    const auto [left, right] = merge_parts(entry);
    const auto position = [&] { return "model.merges[" + std::to_string(at) + "]: "; };
    if (left.empty() || right.empty()) {
      fail(position() + "got " + shorten(entry.dump(), 60) + ", expected two texts");
    }
    const auto id = [&](const std::string& text) {
      const auto found = ids_.find(text);
      if (found == ids_.end()) fail(position() + quote(text) + " is not in the vocabulary");
      return found->second;
    };
    const std::int32_t first = id(left), second = id(right);
    merges_[pair_key(first, second)] = {rank++, id(left + right)};
  }
}

std::optional<std::int64_t> BpeModel::find(const std::string& text) const {
  const auto found = ids_.find(text);
  return found == ids_.end() ? std::nullopt : std::optional<std::int64_t>(found->second);
}

const BpeModel::Merge* BpeModel::find_merge(const std::vector<Symbol>& symbols, std::int32_t left) const {
  const Symbol& symbol = symbols[static_cast<std::size_t>(left)];
  if (symbol.next < 0) return nullptr;
  const auto found = merges_.find(pair_key(symbol.id, symbols[static_cast<std::size_t>(symbol.next)].id));
  return found == merges_.end() ? nullptr : &found->second;
}

// The queue holds candidate merges as they are found; stale ones, whose symbols have changed, are skipped.
// Takes n log n time, also for a piece as long as a book.
void BpeModel::merge(std::vector<Symbol>& symbols) const {
  using Candidate =
      std::tuple<std::int32_t, std::int32_t, std::int32_t>;  // rank, position of the left symbol, id
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue;
  const auto offer = [&](std::int32_t left) {
    if (const Merge* found = find_merge(symbols, left)) queue.emplace(found->rank, left, found->id);
  };
  for (std::size_t at = 0; at < symbols.size(); ++at) offer(static_cast<std::int32_t>(at));
  while (!queue.empty()) {
    const auto [rank, position, id] = queue.top();
    queue.pop();
    Symbol& left = symbols[static_cast<std::size_t>(position)];
    if (left.merged) continue;
    const Merge* found = find_merge(symbols, position);
    if (!found || found->id != id) continue;
    Symbol& right = symbols[static_cast<std::size_t>(left.next)];
    right.merged = true;
    left.id = id;
    left.next = right.next;
    if (right.next >= 0) symbols[static_cast<std::size_t>(right.next)].previous = position;
    if (left.previous >= 0) offer(left.previous);
    offer(position);
  }
}

void BpeModel::encode(std::string_view piece, std::vector<std::int64_t>& ids) const {
  if (whole_) {
    std::string entry;
    for (const char byte : piece) append_utf8(entry, byte_character(static_cast<unsigned char>(byte)));
    if (const auto id = find(entry)) return ids.push_back(*id);
  }
  std::vector<Symbol> symbols;
  symbols.reserve(piece.size());
  const auto size = static_cast<std::int32_t>(piece.size());
  for (std::int32_t at = 0; at < size; ++at) {
    const auto byte = static_cast<unsigned char>(piece[static_cast<std::size_t>(at)]);
    symbols.push_back({byte_ids_[byte], at - 1, at + 1 < size ? at + 1 : -1, false});
  }
  if (size > 1) merge(symbols);
  for (const Symbol& symbol : symbols) {
    if (!symbol.merged) ids.push_back(symbol.id);
  }
}

}  // namespace lamplighter

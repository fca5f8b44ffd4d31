#include "text/bpe_class_expression.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/utf8.h"

namespace lamplighter {
namespace {

using namespace pattern;

using Property = bool (*)(char32_t);

// A set of characters: ranges and properties.
struct Set {
  std::vector<Between> ranges;  // sorted by their ends, without overlaps
  std::vector<Property> properties;

  bool operator()(char32_t code) const {
    const auto found =
        std::lower_bound(ranges.begin(), ranges.end(), code,
                         [](const Between& range, char32_t value) { return range.last < value; });
    if (found != ranges.end() && (*found)(code)) return true;
    return std::any_of(properties.begin(), properties.end(), [&](Property has) { return has(code); });
  }
};

// Reads an expression from left to right.
class ClassReader {
 public:
  explicit ClassReader(Text text) : text_(text) {}

  bool take(Text wanted) {
    if (text_.substr(at_, wanted.size()) != wanted) return false;
    at_ += wanted.size();
    return true;
  }
  bool done() const { return at_ == text_.size(); }

  // Reads a set. Returns nothing when it contains anything but characters, ranges and properties.
  std::optional<Set> set() {
    Set result;
    if (Property alone = property()) {
      result.properties.push_back(alone);
      return result;
    }
    if (!take(U"[") || take(U"]")) return std::nullopt;
    while (!take(U"]")) {
      if (Property one = property()) {
        result.properties.push_back(one);
        if (take(U"-")) return std::nullopt;
        continue;
      }
      const auto first = character();
      if (!first) return std::nullopt;
      const auto last = take(U"-") ? character() : first;
      if (!last || *last < *first) return std::nullopt;
      result.ranges.push_back({*first, *last});
    }
    result.ranges = joined(std::move(result.ranges));
    return result;
  }

 private:
  static std::vector<Between> joined(std::vector<Between> ranges) {
    std::sort(ranges.begin(), ranges.end(),
              [](const Between& a, const Between& b) { return a.first < b.first; });
    std::vector<Between> result;
    for (const Between& range : ranges) {
      if (result.empty() || result.back().last < range.first) {
        result.push_back(range);
      } else {
        result.back().last = std::max(result.back().last, range.last);
      }
    }
    return result;
  }

  // Reads a property. Returns null when none follows.
  Property property() {
    if (take(U"\\p{L}")) return splitting::is_letter;
    if (take(U"\\p{N}")) return splitting::is_number;
    return take(U"\\p{P}") ? splitting::is_punctuation : nullptr;
  }

  // Reads one character of a set. Returns nothing for characters with a special meaning in sets.
  std::optional<char32_t> character() {
    if (done()) return std::nullopt;
    const char32_t code = text_[at_++];
    if (code != U'\\') return Among{U"[]^-&"}(code) ? std::nullopt : std::optional(code);
    if (done()) return std::nullopt;
    const char32_t escaped = text_[at_++];
    constexpr Text kNames = U"rnt", kMeanings = U"\r\n\t";
    if (const std::size_t name = kNames.find(escaped); name != Text::npos) return kMeanings[name];
    return Among{U"\\/[]-^"}(escaped) ? std::optional(escaped) : std::nullopt;
  }

  Text text_;
  std::size_t at_ = 0;
};

}  // namespace

std::optional<ClassMatch> read_class_expression(std::string_view expression) {
  const std::u32string text = decode_utf8(expression);
  ClassReader reader(text);
  const std::size_t spaces = reader.take(U"\\s?") ? 1 : 0;
  auto set = reader.set();
  if (!set) return std::nullopt;
  const std::size_t most = reader.take(U"+") ? kUnlimited : 1;
  if (!reader.done()) return std::nullopt;
  return [set = *std::move(set), spaces, most](Text subject, std::size_t at) {
    return match(sequence(repeat(splitting::is_space, 0, spaces), repeat(std::cref(set), 1, most)), {subject},
                 at);
  };
}

}  // namespace lamplighter

#pragma once

#include <cstddef>
#include <deque>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "text/unicode.h"

// A small backtracking matcher over code points. The comment at each part gives the equivalent regular
// expression in Python. A part is called with the subject, a position and `next`, which matches the rest of
// the pattern from a position; it tries its alternatives in order until `next` succeeds. The rest of a
// pattern is always the same, so a match at a position does not depend on where the search began. A search
// therefore remembers where unlimited repetitions failed and takes linear time.
namespace lamplighter::pattern {

using Text = std::u32string_view;
inline constexpr std::size_t kUnlimited = std::numeric_limits<std::size_t>::max();

// What one search remembers of the repetitions of its pattern.
class Memory {
 public:
  explicit Memory(std::size_t size) : size_(size) {}

  struct Place {
    std::size_t run_end = kUnlimited;  // end of the run of the set's characters that begins here
    std::size_t failed = kUnlimited;   // for a run that ends here: no match from `failed` to its end
  };
  // Entries by position, including the end of the text. `part` is a repetition of the pattern.
  std::vector<Place>& of(const void* part) {
    for (auto& [known, places] : parts_) {
      if (known == part) return places;
    }
    steps += size_;
    return parts_.emplace_back(part, std::vector<Place>(size_ + 1)).second;
  }

  std::size_t steps = 0;

 private:
  std::size_t size_;
  std::deque<std::pair<const void*, std::vector<Place>>> parts_;
};

// A text and the memory of its search; no memory for a single match.
struct Subject {
  Text text;
  Memory* memory = nullptr;
};

// Matches any of the characters.
struct Among {
  Text set;
  constexpr bool operator()(char32_t code) const { return set.find(code) != Text::npos; }
};

// Matches characters first..last.
struct Between {
  char32_t first, last;
  constexpr bool operator()(char32_t code) const { return code >= first && code <= last; }
};

// [set]{least,most}, greedy. `Set` is a predicate on code points.
template <class Set>
struct Repeat {
  Set set;
  std::size_t least, most;

  template <class Next>
  bool operator()(const Subject& subject, std::size_t at, const Next& next) const {
    if (subject.memory != nullptr && most == kUnlimited) return search(subject, at, next);
    const Text text = subject.text;
    std::size_t end = at;
    while (end < text.size() && end - at < most && set(text[end])) ++end;
    for (; end >= at + least; --end) {
      if (next(end)) return true;
      if (end == at) return false;
    }
    return false;
  }

 private:
  // Scans every character once and tries every end of a run once.
  template <class Next>
  bool search(const Subject& subject, std::size_t at, const Next& next) const {
    std::vector<Memory::Place>& places = subject.memory->of(this);
    const std::size_t end = run_end(subject, at, places);
    std::size_t& failed = places[end].failed;
    if (failed == kUnlimited) failed = end + 1;
    for (; failed > at + least; --failed) {
      ++subject.memory->steps;
      if (next(failed - 1)) return true;
    }
    return false;
  }

  std::size_t run_end(const Subject& subject, std::size_t at, std::vector<Memory::Place>& places) const {
    const Text text = subject.text;
    std::size_t scanned = at;
    while (places[scanned].run_end == kUnlimited && scanned < text.size() && set(text[scanned])) ++scanned;
    subject.memory->steps += scanned - at + 1;
    const std::size_t known = places[scanned].run_end;
    const std::size_t end = known == kUnlimited ? scanned : known;
    for (std::size_t place = at; place <= scanned; ++place) places[place].run_end = end;
    return end;
  }
};

template <class Set>
constexpr Repeat<Set> repeat(Set set, std::size_t least = 1, std::size_t most = kUnlimited) {
  return {set, least, most};
}
template <class Set>
constexpr Repeat<Set> one(Set set) {
  return {set, 1, 1};
}

// The characters themselves.
struct Literal {
  Text wanted;

  template <class Next>
  bool operator()(const Subject& subject, std::size_t at, const Next& next) const {
    return subject.text.substr(at, wanted.size()) == wanted && next(at + wanted.size());
  }
};
constexpr Literal literal(Text wanted) {
  return {wanted};
}

// a|b|c for plain words.
struct Words {
  const Text* first;
  const Text* last;

  template <class Next>
  bool operator()(const Subject& subject, std::size_t at, const Next& next) const {
    for (const Text* word = first; word != last; ++word) {
      if (subject.text.substr(at, word->size()) == *word && next(at + word->size())) return true;
    }
    return false;
  }
};
template <std::size_t size>
constexpr Words words(const Text (&list)[size]) {
  return {list, list + size};
}

// (?:part)?, greedy.
template <class Part>
struct Maybe {
  Part part;

  template <class Next>
  bool operator()(const Subject& subject, std::size_t at, const Next& next) const {
    return part(subject, at, next) || next(at);
  }
};
template <class Part>
constexpr Maybe<Part> maybe(Part part) {
  return {part};
}

// first|second.
template <class First, class Second>
struct Either {
  First first;
  Second second;

  template <class Next>
  bool operator()(const Subject& subject, std::size_t at, const Next& next) const {
    return first(subject, at, next) || second(subject, at, next);
  }
};
template <class First, class Second>
constexpr Either<First, Second> either(First first, Second second) {
  return {first, second};
}

// A place that takes no characters, by a predicate on the text and the position.
template <bool (*is)(Text text, std::size_t at)>
struct Where {
  template <class Next>
  bool operator()(const Subject& subject, std::size_t at, const Next& next) const {
    return is(subject.text, at) && next(at);
  }
};

inline bool is_word_boundary(Text text, std::size_t at) {
  const bool before = at > 0 && is_word(text[at - 1]);
  return before != (at < text.size() && is_word(text[at]));
}
inline bool is_start(Text /*text*/, std::size_t at) {
  return at == 0;
}
inline bool is_line_end(Text text, std::size_t at) {
  return at == text.size() || text[at] == U'\n';
}
inline bool is_end(Text text, std::size_t at) {
  return is_line_end(text, at) && at + 1 >= text.size();
}
inline constexpr Where<&is_word_boundary> word_boundary;  // \b
inline constexpr Where<&is_start> start_of_text;          // ^
inline constexpr Where<&is_line_end> end_of_line;         // $ with re.MULTILINE: also before any line feed
inline constexpr Where<&is_end> end_of_text;              // $: also before a line feed that ends the text

// (?![set])
template <class Set>
struct NotBefore {
  Set set;

  template <class Next>
  bool operator()(const Subject& subject, std::size_t at, const Next& next) const {
    return !(at < subject.text.size() && set(subject.text[at])) && next(at);
  }
};
template <class Set>
constexpr NotBefore<Set> not_before(Set set) {
  return {set};
}
constexpr NotBefore<Between> not_before(char32_t code) {
  return {{code, code}};
}

// A sequence of parts.
template <class... Parts>
struct Sequence {
  std::tuple<Parts...> parts;

  template <class Next>
  bool operator()(const Subject& subject, std::size_t at, const Next& next) const {
    return step<0>(subject, at, next);
  }

 private:
  template <std::size_t index, class Next>
  bool step(const Subject& subject, std::size_t at, const Next& next) const {
    if constexpr (index == sizeof...(Parts)) {
      return next(at);
    } else {
      return std::get<index>(parts)(
          subject, at, [&](std::size_t reached) { return step<index + 1>(subject, reached, next); });
    }
  }
};
template <class... Parts>
constexpr Sequence<Parts...> sequence(Parts... parts) {
  return {{parts...}};
}

// Returns the end of a match that begins at `at`.
template <class Pattern>
std::optional<std::size_t> match(const Pattern& part, const Subject& subject, std::size_t at) {
  std::size_t end = 0;
  const bool found = part(subject, at, [&](std::size_t reached) {
    end = reached;
    return true;
  });
  return found ? std::optional(end) : std::nullopt;
}

// Replaces every match from left to right by the result of `replace`. Matches are never empty. Adds to *steps
// the characters that the search looks at, each time.
template <class Pattern, class Replace>
std::u32string transform(Text text, const Pattern& part, const Replace& replace,
                         std::size_t* steps = nullptr) {
  std::u32string result;
  result.reserve(text.size());
  Memory memory(text.size());
  const Subject subject{text, &memory};
  for (std::size_t at = 0; at < text.size();) {
    ++memory.steps;
    if (const auto end = match(part, subject, at)) {
      result += replace(text.substr(at, *end - at));
      at = *end;
    } else {
      result += text[at++];
    }
  }
  if (steps != nullptr) *steps += memory.steps;
  return result;
}

// Replaces every match by a fixed text.
template <class Pattern>
std::u32string substitute(Text text, const Pattern& part, Text replacement = {},
                          std::size_t* steps = nullptr) {
  return transform(
      text, part, [&](Text) { return replacement; }, steps);
}

}  // namespace lamplighter::pattern

#include "text/bpe_added_tokens.h"

#include <algorithm>
#include <utility>

namespace lamplighter {

void BpeAddedTokens::add(std::u32string text, std::int64_t id) {
  std::vector<std::size_t>& lengths = lengths_[text.front()];
  const auto position = std::lower_bound(lengths.begin(), lengths.end(), text.size(), std::greater<>());
  if (position == lengths.end() || *position != text.size()) lengths.insert(position, text.size());
  ids_[std::move(text)] = id;
}

void BpeAddedTokens::split(std::u32string_view text, const std::function<void(std::u32string_view)>& plain,
                           const std::function<void(std::int64_t)>& token) const {
  std::size_t begin = 0;  // of the text between tokens
  std::u32string wanted;
  const auto take = [&](std::size_t at) {
    const auto lengths = lengths_.find(text[at]);
    if (lengths == lengths_.end()) return false;
    for (const std::size_t length : lengths->second) {
      if (length > text.size() - at) continue;
      wanted.assign(text, at, length);
      const auto found = ids_.find(wanted);
      if (found == ids_.end()) continue;
      if (begin < at) plain(text.substr(begin, at - begin));
      token(found->second);
      begin = at + length;
      return true;
    }
    return false;
  };
  for (std::size_t at = 0; at < text.size();) at = take(at) ? begin : at + 1;
  if (begin < text.size()) plain(text.substr(begin));
}

}  // namespace lamplighter

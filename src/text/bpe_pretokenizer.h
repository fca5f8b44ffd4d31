#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "base/json.h"
#include "text/pattern.h"

namespace lamplighter {

// The `pre_tokenizer` of a tokenizer.json: a chain of stages that split a text. Supports Sequence, Split
// (expressions of bpe_pretokenizer.cpp and bpe_class_expression.h, or a string; Isolated), Digits,
// Punctuation (Isolated) and, as the last stage, ByteLevel.
class BpePretokenizer {
 public:
  // `file` reads the whole tokenizer.json. Throws Error(ExitCode::bundle) for any other stage, expression,
  // behaviour or field.
  explicit BpePretokenizer(JsonReader& file);

  // Returns the end of a match that begins at a position. The subject's memory belongs to one text.
  using Stage = std::function<std::optional<std::size_t>(const pattern::Subject&, std::size_t)>;

  // Splits a text. The pieces in order make up the whole text.
  std::vector<pattern::Text> split(pattern::Text text) const;

 private:
  void add(JsonReader stage);
  void add_split(JsonReader& stage);
  void add_byte_level(JsonReader& stage);

  std::vector<Stage> stages_;
  bool byte_level_ = false;
};

}  // namespace lamplighter

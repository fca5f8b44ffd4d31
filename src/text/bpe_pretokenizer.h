#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "base/json.h"
#include "text/pattern.h"

namespace lamplighter {

// The `pre_tokenizer` of a tokenizer.json: stages that split a text, each working on the pieces of the one
// before. Known stages: Sequence, Split (the expressions of bpe_pretokenizer.cpp, those of
// bpe_class_expression.h, or a string; Isolated), Digits, Punctuation (Isolated) and, last, ByteLevel.
class BpePretokenizer {
 public:
  // `file` is the reader of the whole tokenizer.json. Throws Error(ExitCode::bundle) for every other stage,
  // expression, behaviour or field.
  explicit BpePretokenizer(JsonReader& file);

  // Where what a stage looks for ends when it begins at a place; the memory is that of one text.
  using Stage = std::function<std::optional<std::size_t>(const pattern::Subject&, std::size_t)>;

  // The pieces of a text, in order; together they are the text.
  std::vector<pattern::Text> split(pattern::Text text) const;

 private:
  void add(JsonReader stage);
  void add_split(JsonReader& stage);
  void add_byte_level(JsonReader& stage);

  std::vector<Stage> stages_;
  bool byte_level_ = false;
};

}  // namespace lamplighter

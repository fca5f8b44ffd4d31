#include "decode/prompt_tokenizer.h"

#include <algorithm>
#include <utility>

#include "base/files.h"
#include "base/format.h"
#include "base/message.h"
#include "base/utf8.h"
#include "lamplighter/error.h"
#include "text/unicode.h"
#include "text/unread.h"

namespace lamplighter {
namespace {

void replace_all(std::string& text, const std::string& name, const std::string& value) {
  for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + value.size()))
    text.replace(at, name.size(), value);
}

void append(std::vector<std::int64_t>& ids, const std::vector<std::int64_t>& more) {
  ids.insert(ids.end(), more.begin(), more.end());
}

}  // namespace

std::vector<std::int64_t> encode_embedded(const BpeTokenizer& bpe, const std::string& text,
                                          std::int64_t vocabulary) {
  std::vector<std::int64_t> encoded = bpe.encode(text);
  for (const std::int64_t id : encoded) {
    if (id >= vocabulary)
      throw Error(ExitCode::bundle, "tokenizer: gives id " + std::to_string(id) + ", the target embeds 0.." +
                                        std::to_string(vocabulary - 1) +
                                        "; it belongs to another model, export the bundle again");
  }
  return encoded;
}

PromptTokenizer::PromptTokenizer(const Manifest& manifest)
    : prompt_(*manifest.prompt), vocabulary_(manifest.tokens.vocabulary) {
  if (prompt_.kind == "class") return;
  const std::string tokenizer = join_path(manifest.directory, manifest.tokenizer->file);
  max_length_ = manifest.tokenizer->max_length;
  if (manifest.tokenizer->kind == "codes") {
    codes_ = std::make_unique<CodeLists>(tokenizer);
    if (codes_->longest() > max_length_)
      throw Error(ExitCode::bundle, tokenizer + ": lengths: got " + std::to_string(codes_->longest()) +
                                        ", expected at most tokenizer.max_length " +
                                        std::to_string(max_length_));
  } else if (prompt_.kind == "tokens") {
    bpe_ = std::make_unique<BpeTokenizer>(tokenizer);
  } else {
    t5_ = std::make_unique<T5Tokenizer>(tokenizer, *manifest.tokenizer);
  }
}

PromptIds PromptTokenizer::encode(const Request& request, const Grid& grid) const {
  if (bpe_) return encode_tokens(request, grid);
  if (codes_) return {codes_->encode(request.prompt)};
  if (t5_) {
    T5Caption caption = t5_->encode(request.prompt);
    return {std::move(caption.ids), {}, std::move(caption.cut)};
  }
  return {{*request.class_id}};
}

PromptTokenizer::Filled PromptTokenizer::fill(std::string text, const std::string& caption,
                                              const Grid& grid) {
  replace_all(text, "{width}", std::to_string(grid.width));
  replace_all(text, "{height}", std::to_string(grid.height));
  replace_all(text, "{rows}", std::to_string(grid.rows));
  replace_all(text, "{columns}", std::to_string(grid.columns));
  replace_all(text, "{preview_rows}", std::to_string(grid.preview_rows));
  replace_all(text, "{preview_columns}", std::to_string(grid.preview_columns));
  constexpr const char* kPlace = "{prompt}";  // last: a caption may have braces of its own
  const std::size_t begin = text.find(kPlace);
  replace_all(text, kPlace, caption);
  return {std::move(text), caption, begin};
}

PromptTokenizer::Filled PromptTokenizer::prompt_text(const Request& request, const Grid& grid) const {
  const std::string caption =
      prompt_.strip ? encode_utf8(strip(decode_utf8(request.prompt))) : request.prompt;
  const std::string text = caption.empty() ? prompt_.empty_text.value_or(prompt_.text) : prompt_.text;
  return fill(text, caption, grid);
}

std::vector<std::int64_t> PromptTokenizer::encode_text(const std::string& text) const {
  return encode_embedded(*bpe_, text, vocabulary_);
}

std::string PromptTokenizer::excess_words(const Filled& text, const std::vector<std::int64_t>& ids,
                                          std::size_t excess) const {
  const std::string seen = bpe_->bytes(ids);
  if (text.begin == std::string::npos || seen.size() + text.caption.size() < text.text.size()) return "";
  const std::size_t length =
      seen.size() - (text.text.size() - text.caption.size());  // of the composed caption
  std::vector<std::size_t> begins;  // of the ids that begin before the caption's end
  std::size_t begin = 0;
  for (const std::int64_t id : ids) {
    if (begin >= text.begin + length) break;
    begins.push_back(begin);
    begin += bpe_->bytes({id}).size();
  }
  if (excess >= begins.size()) return "";
  const std::size_t stop = begins[begins.size() - excess];
  if (stop < text.begin) return "";  // the template alone is too long
  return unread_end(text.caption, std::string_view(seen).substr(text.begin, length), stop - text.begin);
}

void PromptTokenizer::check_length(const char* name, const Filled& text, const std::vector<std::int64_t>& ids,
                                   std::size_t half) const {
  const auto got = static_cast<std::int64_t>(ids.size()), all = static_cast<std::int64_t>(half);
  const std::int64_t most = std::min(max_length_, prompt_.length - (all - got));
  if (got <= most) return;
  const std::string words = excess_words(text, ids, static_cast<std::size_t>(got - most));
  throw Error(ExitCode::input,
              std::string(name) + ": got " + counted(got, "token") + ", expected at most " +
                  std::to_string(most) + "; " +
                  (words.empty() ? "shorten it" : "leave out its end, from " + quote(words)));
}

PromptIds PromptTokenizer::encode_tokens(const Request& request, const Grid& grid) const {
  const Filled text = prompt_text(request, grid);
  const std::vector<std::int64_t> encoded = encode_text(text.text);
  PromptIds prompt{prompt_.prefix, prompt_.unconditional};
  append(prompt.ids, encoded);
  append(prompt.ids, prompt_.suffix);
  append(prompt.ids, grid.before);
  check_length("prompt", text, encoded, prompt.ids.size());
  Filled negative;
  std::vector<std::int64_t> negative_ids;
  if (prompt_.unconditional_pad) {
    prompt.unconditional.insert(prompt.unconditional.end(), encoded.size(), *prompt_.unconditional_pad);
    append(prompt.unconditional, prompt_.suffix);
  } else if (prompt_.negative_text) {
    negative = fill(*prompt_.negative_text, request.negative_prompt.value_or(prompt_.negative_prompt), grid);
    negative_ids = encode_text(negative.text);
    append(prompt.unconditional, negative_ids);
  }
  append(prompt.unconditional, grid.before);
  check_length("negative_prompt", negative, negative_ids, prompt.unconditional.size());
  return prompt;
}

}  // namespace lamplighter
